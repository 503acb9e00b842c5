"""What a training run is given besides its configuration: kept with the run, and compared when it is resumed.

::

    runs/<name>/
      tasks.json        the tasks to train on, to choose checkpoints by and to evaluate on, as they were selected
      reward/luck.py    the code of a reward function of one's own
      imitated.txt      ids of the episodes that sft imitates

Each may change between two starts under an unchanged configuration: a task file is edited, a suite gets another
version, a gym lists other tasks. What is learnt is then something else, and the steps before and after don't belong
together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.errors import ResumeMismatch
from cuarl.rollout import plugin
from cuarl.run.atomic import write_text
from cuarl.run.manifest import read_manifest
from cuarl.tasks import changes
from cuarl.tasks.task import Task

if TYPE_CHECKING:
    from cuarl.run import Run
    from cuarl.workflow.experiment import Experiment

_TASKS, _REWARD, _IMITATED = "tasks.json", "reward", "imitated.txt"
_ROLES = {"train": "training task", "validation": "validation task", "eval": "evaluation task"}
_MOST_LINES = 20
OPTION = "--accept-changes"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that decides what a run learns, and is no option."""

    tasks: Mapping[str, Sequence[changes.Content]]
    """By role: train, eval, and validation where some are kept for it."""
    reward: Mapping[str, bytes]
    """Source of the reward function by module; empty for one that comes with cuarl."""

    @classmethod
    def of(
        cls, reward: str, train: Sequence[Task], evaluation: Sequence[Task], validation: Sequence[Task] = ()
    ) -> Inputs:
        """Read them. Raises ConfigError if the reward can't be imported."""
        by_role = {"train": train, "eval": evaluation, **({"validation": validation} if validation else {})}
        tasks = {role: [changes.content(task) for task in chosen] for role, chosen in by_role.items()}
        return cls(tasks, {name: path.read_bytes() for name, path in sorted(plugin.sources(reward).items())})


def check(experiment: Experiment, inputs: Inputs) -> None:
    """Raise ResumeMismatch, with the list, if a run is resumed with other inputs than it was started with."""
    if experiment.resume is None:
        return
    _settle(
        experiment,
        _changes(experiment, experiment.resume, inputs),
        "the run's tasks or its reward's code are not what they were",
    )


def keep(run: Run, inputs: Inputs) -> None:
    """Write them into the run, in place of those that were changed."""
    write_text(run.path / _TASKS, json.dumps(inputs.tasks, indent=1, ensure_ascii=False) + "\n")
    folder = run.path / _REWARD
    if inputs.reward or folder.is_dir():
        folder.mkdir(exist_ok=True)
        for stale in set(folder.glob("*.py")) - {folder / f"{name}.py" for name in inputs.reward}:
            stale.unlink()
        for name, source in inputs.reward.items():
            (folder / f"{name}.py").write_bytes(source)
    run.note_tasks(changes.digest(inputs.tasks))


def check_imitated(experiment: Experiment, run: Path, ids: Sequence[str]) -> None:
    """The same for the episodes that are imitated, which are known only once the store is open."""
    file = run / _IMITATED
    if file.is_file():
        before = file.read_text(encoding="utf-8").split()
        gone, new = len(set(before) - set(ids)), len(set(ids) - set(before))
        lines = [f"of {len(before)} episodes {gone} are gone, and {new} are new"] if before != list(ids) else []
        _settle(experiment, lines, "the episodes to imitate are not what they were")
    write_text(file, "".join(f"{name}\n" for name in ids))


def _changes(experiment: Experiment, folder: Path, inputs: Inputs) -> list[str]:
    if not (folder / _TASKS).is_file():  # from before they were kept, or killed before it began
        if read_manifest(folder).attempts:
            experiment.watcher.note(
                "the run has no record of its tasks, so they are not compared with those selected now"
            )
        return []
    try:
        kept = json.loads((folder / _TASKS).read_text(encoding="utf-8"))
        lines = [
            f"{what} {line}"
            for role, what in _ROLES.items()
            if role in kept or role in inputs.tasks or role != "validation"
            for line in changes.differences(kept.get(role, []), inputs.tasks.get(role, []))
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ResumeMismatch(
            f"the tasks that the run was started with can't be read: {error}",
            where=str(folder / _TASKS),
            hint=f"remove the file to resume without comparing: rm {folder / _TASKS}",
        ) from error
    code = {path.stem: path.read_bytes() for path in sorted((folder / _REWARD).glob("*.py"))}
    return lines + [f"reward: {line} (see {folder / _REWARD})" for line in plugin.changes(code, inputs.reward)]


def _settle(experiment: Experiment, lines: Sequence[str], what: str) -> None:
    """Refuse what changed, or tell it where it is accepted."""
    if not lines:
        return
    more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    listed = "\n".join(f"  {line}" for line in [*lines[:_MOST_LINES], *more])
    if experiment.accept_changes:
        experiment.watcher.note(f"{what}; resuming with them as they are now:\n{listed}")
        return
    raise ResumeMismatch(
        f"{what}:\n{listed}",
        where=str(experiment.resume),
        hint=f"put them back, or resume with them as they are now: {OPTION}; or --name for a new run",
    )
