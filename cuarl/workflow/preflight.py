"""What a start would meet, found out before anything is loaded or written: names, models, devices, disks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.errors import ConfigError, PrerequisiteError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuarl.env.backend import Backend
    from cuarl.policy.load import Examined
    from cuarl.policy.spec import ModelSpec
    from cuarl.tasks.task import Task
    from cuarl.workflow.experiment import Experiment

LEAST_FREE = 2 << 20
"""Bytes without which no run is begun: its manifest, configuration and logs would fill them."""


def check_place(experiment: Experiment) -> None:
    """See that a new run's name is free, that the runs it reads are there, and that its disk has room.

    Raises ConfigError, RunExists or PrerequisiteError.
    """
    from cuarl.run import Run, find_run

    runs_dir = experiment.settings.runs_dir
    if experiment.resume is None and experiment.name:
        Run.check_name(runs_dir, experiment.name, overwrite=experiment.overwrite)
    for name in experiment.config.learning.sft_runs:
        find_run(runs_dir, name)
    free = _free(runs_dir)
    if free < LEAST_FREE:
        raise PrerequisiteError(
            f"only {free / 2**20:.0f} MiB are free for runs", where=str(runs_dir), hint=f"df -h {_existing(runs_dir)}"
        )


def check_oracle(backend: Backend, tasks: Sequence[Task]) -> None:
    """See that somebody may know how the tasks are solved.

    Raises ConfigError with the ids of those that nobody does.
    """
    unknown = sorted({task.id for task in tasks if not backend.may_solve(task)})
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise ConfigError(
            f"nothing tells how these tasks are solved: {', '.join(unknown[:3])}{more}",
            where="--agent",
            hint="write a plan for them (docs/guides/tasks.md#plans), or use --agent policy",
        )


def model_facts(experiment: Experiment, spec: ModelSpec, examined: Examined | None, *, trained: bool) -> dict[str, str]:
    """What memory and disk have to hold, for the plan; ``trained`` counts gradients and the optimiser's state."""
    from cuarl.policy.load import device_named
    from cuarl.policy.nf4.codes import BITS

    room = f"{_size(_free(experiment.settings.runs_dir))} free in {experiment.settings.runs_dir}"
    if examined is None:
        return {
            "weights": f"not on this machine; they are fetched at the start (hf download {spec.model})",
            "disk": room,
        }
    if not examined.parameters:
        return {"disk": room}
    device = device_named(spec.device)
    half = spec.dtype in ("bfloat16", "float16") or (spec.dtype == "auto" and device.type != "cpu")
    weights = (examined.parameters - examined.packed) * (2 if half else 4) + int(examined.packed * BITS / 8)
    facts = {"weights": f"{examined.parameters / 1e6:,.1f} million, {_size(weights)} on {device}"}
    if examined.packed:
        facts["weights"] += f", {examined.packed / 1e6:,.1f} million of them in four bits"
    if trained and spec.train == "full":
        originals = 4 * examined.parameters if half else 0
        state = originals + 12 * examined.parameters
        facts["weights"] += f", and {_size(state)} of gradients and optimiser"
        room += f"; a checkpoint takes about {_size(weights + originals + 8 * examined.parameters)}"
    return facts | {"disk": room}


def _size(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def _free(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free


def _existing(folder: Path) -> Path:
    """The folder, or the nearest around it that is there."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.is_dir())
