"""Starting several processes: the argument list for accelerate's launcher, and whether a launcher did what was asked.

One process needs no launcher. Importable without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from cuarl.errors import ConfigError
from cuarl.suggest import did_you_mean, nearest
from cuarl.train.accelerate_file import machines_of
from cuarl.train.nodes import ALONE, WAIT_S, Node, parse_place

PRESETS = ("single", "ddp", "fsdp2")
"""Launcher configurations shipped as data: one process; several, each with the whole model; several with its layers in
shards while they train."""


class Launch(NamedTuple):
    """How many processes are started here, by which configuration, and which of the machines this is."""

    processes: int = 1
    """On each machine."""
    accelerate: str = "ddp"
    node: Node = ALONE

    @property
    def world(self) -> int:
        """Processes of all machines."""
        return self.processes * self.node.count


def launch_asked_for(
    *,
    processes: int | None = None,
    accelerate: str | None = None,
    nodes: int | None = None,
    node_rank: int | None = None,
    rendezvous: str | None = None,
) -> Launch:
    """What options ask for, above a configuration file of accelerate if ``accelerate`` is one. Raises ConfigError."""
    said = machines_of(_configuration(accelerate)) if accelerate not in (None, *PRESETS) else None
    count = nodes or (said and said.nodes) or 1
    processes = processes or (said and said.processes) or 1
    name = accelerate or "ddp"
    if count == 1:
        unused = [
            flag for flag, value in (("--node-rank", node_rank), ("--rendezvous", rendezvous)) if value is not None
        ]
        if unused:
            raise ConfigError(f"{unused[0]} has no effect on one machine", hint="--nodes 2, or leave it out")
        return Launch(processes, name)
    rank = node_rank if node_rank is not None else said.node_rank if said else None
    host, port = parse_place(rendezvous) if rendezvous else (said.host, said.port or 29500) if said else (None, 0)
    missing = [flag for flag, value in (("--node-rank", rank), ("--rendezvous", host)) if value is None]
    if rank is None or host is None:
        raise ConfigError(
            f"{count} nodes need {missing[0]}",
            where=f"--nodes {count}",
            hint=f"--nodes {count} --node-rank 0 --rendezvous HOST_OF_NODE_0:29500",
        )
    if not 0 <= rank < count:
        raise ConfigError(
            f"there is no node {rank} of {count}", where="--node-rank", hint=f"they are numbered from 0 to {count - 1}"
        )
    return Launch(processes, name, Node(rank, count, host, port))


def launch_command(
    arguments: Sequence[str],
    *,
    processes: int,
    accelerate: str = "ddp",
    node: Node = ALONE,
    run: Path | None = None,
    wait_s: float = WAIT_S,
) -> list[str]:
    """The command that runs ``cuarl *arguments`` in ``processes`` processes of this machine.

    ``accelerate`` is a preset or a configuration file of accelerate. Where there are several machines, ``run`` is the
    run's folder, which the others are told of, and ``wait_s`` how long they wait for each other. A list, never a shell
    string. Raises ConfigError for a configuration that is neither.
    """
    configuration = str(_configuration(accelerate))
    several = [
        "--main_process_ip",
        node.host,
        "--same_network",
        "--rdzv_conf",
        f"timeout={round(wait_s) + 60}",  # cuarl's own wait ends before, and says more
    ]
    return [
        sys.executable,
        "-m",
        "cuarl.train.launcher",
        *(["--run", str(run), "--wait", str(wait_s)] if run is not None else []),
        "--config_file",
        configuration,
        "--num_processes",
        str(processes * node.count),
        "--num_machines",
        str(node.count),
        "--machine_rank",
        str(node.rank),
        "--main_process_port",
        str(node.port),  # 0 is a free one, so that several runs fit on one machine
        *(several if node.count > 1 else []),
        "-m",
        "cuarl",
        *arguments,
    ]


def _configuration(name: str | None) -> Path:
    name = name or "ddp"
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
    """Raise ConfigError if accelerate was asked for several processes and started one, or for several machines.

    On a machine without a GPU its launcher drops ``--num_processes`` unless told ``--multi_gpu``. It then leaves the
    address of a rendezvous behind, at which nobody will meet. Several machines need more than a launcher does: a run
    that one of them keeps, and somebody who notices that one is gone.
    """
    launched = "ACCELERATE_MIXED_PRECISION" in environment and "MASTER_PORT" in environment
    if launched and "WORLD_SIZE" not in environment:
        raise ConfigError(
            "accelerate was asked for several processes, but started only one",
            where="accelerate launch --num_processes",
            hint="cuarl train --processes 2 (or: accelerate launch --multi_gpu --num_processes N -m cuarl train)",
        )
    machines = environment.get("GROUP_WORLD_SIZE", "1")
    if machines != "1" and LAUNCHED_HERE not in environment:
        raise ConfigError(
            f"{machines} machines were started by another launcher than cuarl's",
            where="accelerate launch --num_machines, torchrun --nnodes",
            hint=f"start each of them with --nodes {machines} --node-rank R --rendezvous HOST:PORT",
        )


LAUNCHED_HERE = "CUARL_LOST_PEER"
"""Set by cuarl's own launcher: the file in which it tells its processes that another one is gone."""
