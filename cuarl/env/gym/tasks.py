"""The tasks that a gym server lists, and which of them train or evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cuarl.config.schema import ExperimentConfig
from cuarl.env.gym.client import Gym
from cuarl.env.gym.options import Options
from cuarl.errors import ConfigError, PrerequisiteError, RolloutError, TaskError
from cuarl.settings import Settings
from cuarl.suggest import did_you_mean
from cuarl.tasks.files import as_path, load_file
from cuarl.tasks.gym import GymTask, Split, narrow, pick
from cuarl.tasks.recipe import TaskSource, read_sources
from cuarl.tasks.source import Selection, split
from cuarl.tasks.suites import Role


async def listed(options: Options, settings: Settings) -> list[GymTask]:
    """All tasks of the gym. Raises PrerequisiteError if the server can't be asked."""
    gym = Gym.of(options, settings)
    try:
        return await gym.tasks()
    except RolloutError as error:
        raise PrerequisiteError(
            f"the gym's tasks can't be listed: {error.what}", where=error.where, hint="export GYM_BASE_URL=URL"
        ) from error
    finally:
        await gym.close()


def select(tasks: Sequence[GymTask], options: Options, config: ExperimentConfig, role: Role) -> Selection:
    """Those of the gym's ``tasks`` for training or for evaluation. Raises TaskError.

    Names mean those tasks, whatever their role; without any, the role's share is meant. A task file says in its own
    words what is to be done in tasks of the gym, by their ids, and may have plans for them.
    """
    selectors = split(config.eval_tasks or config.tasks if role == "eval" else config.tasks)
    names = [one.text for one in selectors if not one.is_json and one.text != "all"]
    sources = [source for one in selectors if one.is_json for source in read_sources(one.text)]
    how = Split(ratio=options.train_ratio, seed=options.seed, eval_range=options.eval_number_range)
    found = _named(tasks, names)
    if role == "eval" and not config.eval_tasks:  # the other share of the training tasks
        sources = [s.model_copy(update={"split_type": "eval"}) if s.split_type == "train" else s for s in sources]
    for source in sources:
        found += [task for task in _of_source(tasks, source, how) if task not in found]
    found = found if names or sources else how.share(tasks, role)
    return Selection(
        narrow(
            found,
            tags=options.tags,
            categories=config.category,
            difficulties=config.difficulty,
            limit=config.limit,
            seed=config.seed if config.limit else None,
        )
    )


def _named(tasks: Sequence[GymTask], names: Sequence[str]) -> list[GymTask]:
    """The tasks of those names, and of those files. Raises TaskError for one that the gym does not have."""
    files = {name: path for name in names if (path := as_path(name)) is not None and path.is_file()}
    plain = [name for name in names if name not in files]
    return [*(pick(tasks, plain) if plain else ()), *(one for path in files.values() for one in _written(tasks, path))]


def _written(tasks: Sequence[GymTask], path: Path) -> list[GymTask]:
    numbers = {task.task.id: task.number for task in tasks}
    written = load_file(path)
    strange = next((one for one in written if one.task.id not in numbers), None)
    if strange is not None:
        raise TaskError(
            f"the gym has no task {strange.task.id}{did_you_mean(strange.task.id, numbers)}",
            where=strange.where,
            hint="cuarl tasks gym",
        )
    return [GymTask(one.task, numbers[one.task.id]) for one in written]


def _of_source(tasks: Sequence[GymTask], source: TaskSource, how: Split) -> Sequence[GymTask]:
    """The seeds' JSON objects, whose split is by their own ratio and seed if they have any."""
    if source.source_type not in ("gym", "genv_umetrip"):
        raise ConfigError(
            f'source_type "{source.source_type}" names no tasks of a gym',
            where="--env gym",
            hint='{"source_type": "gym", "split_type": "train"}',
        )
    given = source.model_fields_set
    own = Split(ratio=source.train_ratio, seed=source.seed) if {"train_ratio", "seed"} & given else how
    found = tasks if source.split_type == "none" else own.share(tasks, source.split_type)
    if source.task_names:
        found = pick(found, source.task_names.split(","))
    kept = narrow(
        found,
        categories=(source.category,) if source.category else (),
        difficulties=(source.difficulty,) if source.difficulty else (),
        limit=source.limit,
        seed=source.seed,
    )
    ids = {task.id for task in kept}
    return [task for task in found if task.task.id in ids]
