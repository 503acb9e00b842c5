"""Starting several processes: the argument list for accelerate's launcher, and whether a launcher did what was asked.

One process needs no launcher. Importable without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from cuarl.errors import ConfigError
from cuarl.suggest import did_you_mean, nearest

PRESETS = ("single", "ddp", "fsdp2")
"""Launcher configurations shipped as data: one process; several, each with the whole model; several with its layers in
shards while they train."""


def launch_command(arguments: Sequence[str], *, processes: int, accelerate: str = "ddp") -> list[str]:
    """The command that runs ``cuarl *arguments`` in ``processes`` processes.

    ``accelerate`` is a preset or a configuration file of accelerate. A list, never a shell string. Raises ConfigError
    for something that is neither.
    """
    return [
        sys.executable,
        "-m",
        "cuarl.train.launcher",
        "--config_file",
        str(_configuration(accelerate)),
        "--num_processes",
        str(processes),
        "--main_process_port",
        "0",  # a free one, so that several runs fit on one machine
        "-m",
        "cuarl",
        *arguments,
    ]


def _configuration(name: str) -> Path:
    if name in PRESETS:
        return Path(str(files("cuarl.train") / "presets" / f"{name}.yaml"))
    path = Path(name).expanduser()
    if path.is_file():
        return path
    raise ConfigError(
        f'"{name}" is neither a launch preset nor a file{did_you_mean(name, PRESETS)}',
        where="--accelerate",
        hint=f"--accelerate {nearest(name, PRESETS) or 'ddp'}",
    )


def check_launched(environment: Mapping[str, str]) -> None:
    """Raise ConfigError if accelerate was asked for several processes and started one.

    On a machine without a GPU its launcher drops ``--num_processes`` unless told ``--multi_gpu``. It then leaves the
    address of a rendezvous behind, at which nobody will meet.
    """
    launched = "ACCELERATE_MIXED_PRECISION" in environment and "MASTER_PORT" in environment
    if launched and "WORLD_SIZE" not in environment:
        raise ConfigError(
            "accelerate was asked for several processes, but started only one",
            where="accelerate launch --num_processes",
            hint="cuarl train --processes 2 (or: accelerate launch --multi_gpu --num_processes N -m cuarl train)",
        )
