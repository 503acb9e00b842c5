"""One training step, made to see what a run would take: its time, its memory and its room on the disk."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import SecretStr

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.job import Job
from cuarl.workflow.training import train
from cuarl.workflow.watcher import Silent


@dataclass(frozen=True, slots=True)
class Probed:
    """What one step took, and what follows for the run."""

    step_s: float
    collecting_s: float
    """Of it, for episodes."""
    evaluation_s: float
    """Of one whole evaluation, as long as its episodes take as long as those of training."""
    total_s: float
    """Of all steps and evaluations."""
    peak_gib: float
    """Of the GPU's memory where there is one, else of the process's."""
    step_bytes: int
    """Kept of a step: episodes and metrics, without the checkpoint."""
    checkpoint_bytes: int


@dataclass
class _Metrics(Silent):
    values: dict[str, float] = field(default_factory=dict)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.values.update(values)


def probe(experiment: Experiment) -> Probed:
    """Make one step of a training run in a folder that is deleted afterwards; nothing of it is recorded.

    The first step of a process is its slowest. Raises ConfigError for Tinker, which would charge for it, and all that
    training raises.
    """
    config = experiment.config
    if config.trainer.type != "local":
        raise ConfigError("a probe trains in this process, and Tinker elsewhere", where="--probe", hint="leave it out")
    told = _Metrics()
    with TemporaryDirectory(prefix="cuarl-probe-") as folder:
        job = Job.of(_one_step(experiment, Path(folder), told))
        run = train(job).run.path
        checkpoints = _size(run / "checkpoints")
        kept = _size(Path(folder)) - checkpoints
    return _probed(config, told.values, kept, checkpoints)


def _one_step(experiment: Experiment, folder: Path, told: _Metrics) -> Experiment:
    once = {"max_steps": 1, "skip_baseline": True, "eval_every": 0, "eval_episodes": 1, "warmup_steps": 0, "track": ()}
    once |= {"validation_episodes": 1} if experiment.config.validation_split else {}
    config = ExperimentConfig.model_validate(experiment.config.model_dump() | once)
    place = {"runs_dir": folder, "database_url": SecretStr(f"sqlite:///{folder}/cuarl.db"), "blobs_url": None}
    return replace(
        experiment,
        resolved=replace(experiment.resolved, config=config),
        watcher=told,
        name=None,
        overwrite=False,
        resume=None,
        settings=experiment.settings.model_copy(update=place),
    )


def _probed(config: ExperimentConfig, told: Mapping[str, float], kept: int, checkpoints: int) -> Probed:
    collecting, evaluated = told.get("time/rollout_s", 0.0), told.get("time/eval_s", 0.0)
    each = collecting / (config.groups_per_batch * config.group_size) if collecting else evaluated
    evaluation = each * config.eval_episodes
    validation = each * config.validation_episodes if config.validation_split else 0.0
    step = told["time/step_s"] - evaluated
    times = (not config.skip_baseline) + _times(config.max_steps, config.eval_every)
    played = times * evaluation + _times(config.max_steps, config.save_every) * validation
    here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    return Probed(
        step,
        collecting,
        evaluation,
        config.max_steps * step + played,
        told.get("perf/peak_gib", here),
        kept,
        checkpoints,
    )


def _times(steps: int, every: int) -> int:
    """How often something is due that is done every so many steps, and at the end."""
    return ((steps - 1) // every if every else 0) + 1


def _size(folder: Path) -> int:
    return sum(os.lstat(path).st_size for path in folder.rglob("*") if path.is_file())
