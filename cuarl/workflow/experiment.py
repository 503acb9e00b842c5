"""The experiment that somebody asks for, and the run directory it is done in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from cuarl.config import backends
from cuarl.config.keys import paths
from cuarl.config.load import Resolved
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow.watcher import SILENT, Watcher

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is to be done, with what, and who watches."""

    resolved: Resolved
    settings: Settings
    """Machine facts and secrets, with ``--db`` and ``--runs-dir`` on top."""
    watcher: Watcher = SILENT
    tasks: Sequence[Task] | None = None
    """Training tasks that are given as they are; None: as the configuration selects them."""
    eval_tasks: Sequence[Task] | None = None
    """The same for evaluation."""
    name: str | None = None
    overwrite: bool = False
    resume: Path | None = None
    """Directory of the run to resume."""
    accept_changes: bool = False
    """Go on with it although its tasks or its reward's code are not what they were."""
    command: tuple[str, ...] = ()
    """The command line that asks for it, for the record."""

    @property
    def config(self) -> ExperimentConfig:
        """The resolved fields."""
        return self.resolved.config

    def for_tasks(self, tasks: Sequence[Task]) -> Self:
        """With the environment that all of ``tasks`` are for, where nobody named one and it is not the simulator's."""
        wanted = {task.env for task in tasks}
        given = any(source != "default" for path, source in self.resolved.sources.items() if path.startswith("env"))
        if given or len(wanted) != 1 or self.resume is not None:
            return self
        (name,) = wanted
        if name not in backends.names():
            return self
        config = ExperimentConfig.model_validate(self.config.model_dump() | {"env": {"type": name}})
        sources = {path: self.resolved.sources.get(path, "default") for path in paths(config)} | {"env": "the tasks"}
        return replace(self, resolved=replace(self.resolved, config=config, sources=sources))

    def open_run(
        self, kind: Literal["train", "rollout", "eval", "serve"], store: Store, *, actor: str | None = None
    ) -> Run:
        """Make the run directory, or reopen the one to resume; enter it (``with``) to lock and log.

        ``actor`` stands in a name that is made up, where it is not the model that acts.
        A run that is overwritten is deleted from ``store``, too. Raises RunExists for a name that is taken and
        ResumeMismatch for options that differ from the run's.
        """
        from cuarl.run import Run

        if self.resume is not None:
            return Run.reopen(self.resume, self.resolved, command=self.command)
        return Run.create(
            self.settings.runs_dir,
            self.resolved,
            kind=kind,
            name=self.name,
            actor=actor,
            overwrite=self.overwrite,
            forget=partial(_forget, store, self.watcher),
            command=self.command,
        )


def _forget(store: Store, watcher: Watcher, run_id: str) -> None:
    from cuarl.store.deletion import delete_run

    done = delete_run(store, run_id)
    kept = f"; {done.kept} are kept, since {done.because} (later: cuarl db prune)" if done.because and done.kept else ""
    watcher.note(f"deleted the run of that name, {done.episodes} episodes and {done.screenshots} screenshots{kept}")


def run_to_resume(reference: str, settings: Settings, *, name: str | None, overwrite: bool) -> Path:
    """The directory of the training run that ``--resume`` means.

    Raises ConfigError if ``--name`` or ``--overwrite`` contradict it, and for a run of another kind.
    """
    from cuarl.run import find_run, read_manifest

    if name or overwrite:
        other = "--name" if name else "--overwrite"
        raise ConfigError(f"--resume and {other} contradict each other", hint="leave one of them out")
    path = find_run(settings.runs_dir, reference)
    kind = read_manifest(path).kind
    if kind != "train":
        raise ConfigError(
            f'"{path.name}" is a run of cuarl {kind}, and only training is resumed',
            where=str(path),
            hint="name a training run: cuarl train --resume NAME",
        )
    return path
