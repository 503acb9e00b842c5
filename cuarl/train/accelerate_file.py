"""Configuration files of accelerate: what cuarl takes from one, and what it refuses by name. Importable without torch.

``accelerate config`` asks for much that is decided elsewhere here (precision, sharding's details) or not done at all
(DeepSpeed, Megatron-LM, TPUs). Left alone such a key would be without effect, or hang.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cuarl.config.files import ConfigFile, read
from cuarl.errors import ConfigError

_SHARDS = "FSDP"
_TYPES = ("MULTI_GPU", "MULTI_NPU", "MULTI_XPU", "MULTI_MLU", "MULTI_HPU", "MULTI_MUSA", "MULTI_SDAA", _SHARDS)


def _off(value: Any) -> bool:
    return value in (None, False, {}, "", "no", "NO", "false")


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "compute_environment": (lambda v: v in (None, "LOCAL_MACHINE"), "LOCAL_MACHINE"),
    "distributed_type": (lambda v: v in (None, *_TYPES), "MULTI_GPU (also for processes on a CPU), or FSDP"),
    "mixed_precision": (_off, '"no"; precision is chosen with --dtype'),
    "rdzv_backend": (lambda v: v in (None, "static"), "static; nodes have numbers, and node 0 keeps the run"),
    "use_cpu": (_off, "false; the device is chosen with --device cpu"),
    "dynamo_config": (_off, "nothing, for nothing is compiled"),
    "deepspeed_config": (_off, "nothing; shards are made by fsdp2"),
    "megatron_lm_config": (_off, "nothing; shards are made by fsdp2"),
    "parallelism_config": (_off, "nothing; shards are made by fsdp2"),
    "fp8_config": (_off, "nothing; precision is chosen with --dtype"),
    "mpirun_config": (_off, "nothing; cuarl starts the processes"),
    "tpu_use_cluster": (_off, "false"),
    "fsdp_config.fsdp_version": (lambda v: v in (None, 2), "2"),
    "fsdp_config.fsdp_offload_params": (_off, "false"),
    "fsdp_config.fsdp_activation_checkpointing": (_off, "false; it is asked for with --gradient-checkpointing"),
}
"""Keys that would be without effect with other values: what is taken, and what to write instead."""


class Machines(NamedTuple):
    """What a file says of machines and processes; None where it says nothing."""

    nodes: int | None
    node_rank: int | None
    host: str | None
    port: int | None
    processes: int | None
    """On each machine."""


def machines_of(path: Path) -> Machines:
    """Read a file. Raises ConfigError for a key that cuarl can't honour."""
    file = read(path)
    for key, (taken, instead) in _RULES.items():
        name, _, inner = key.partition(".")
        value = file.values.get(name)
        value = value.get(inner) if inner and isinstance(value, Mapping) else None if inner else value
        if not taken(value):
            raise ConfigError(
                f"{key} {value} of accelerate's configuration has no effect here",
                where=file.where(key),
                hint=f"write {instead}, or leave it out",
            )
    nodes, total = _number(file, "num_machines"), _number(file, "num_processes")
    if total is not None and total % (nodes or 1):
        raise ConfigError(
            f"num_processes {total} can't be shared out over {nodes} machines evenly",
            where=file.where("num_processes"),
            hint="it counts the processes of all machines together",
        )
    host = file.values.get("main_process_ip")
    return Machines(
        nodes,
        _number(file, "machine_rank"),
        str(host) if host else None,
        _number(file, "main_process_port"),
        None if total is None else total // (nodes or 1),
    )


def _number(file: ConfigFile, key: str) -> int | None:
    value = file.values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ConfigError(f"{key} {value!r} is no number", where=file.where(key))
    return int(value)
