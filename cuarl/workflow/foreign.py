"""Tasks that options make, and those that servers list: environments of other people's making, and files of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cuarl.config.schema import ExperimentConfig
from cuarl.env.browsergym import options as browsergym
from cuarl.env.grounding import options as grounding
from cuarl.env.gymnasium import options as gymnasium
from cuarl.env.openenv import options as openenv
from cuarl.errors import ConfigError, TaskError
from cuarl.settings import Settings
from cuarl.suggest import did_you_mean
from cuarl.tasks.select import Filters, apply, require_some
from cuarl.tasks.source import Selection
from cuarl.tasks.suites import Role
from cuarl.tasks.task import Task
from cuarl.workflow import signals

SPLITS: Mapping[Role, str] = {"train": "train", "eval": "test"}
"""OpenEnv's name for what tasks are for."""
_FILTERS = ("tasks", "eval_tasks", "category", "difficulty", "split", "limit")


def select(config: ExperimentConfig, settings: Settings, role: Role) -> Selection | None:
    """The tasks that options make, or that a server lists; None where tasks are selected as everywhere."""
    options = config.env
    if isinstance(options, openenv.Options):
        return _openenv(options, config, settings, role)
    if isinstance(options, grounding.Options):
        return _grounding(options, config)
    made: Sequence[Task] = ()
    if isinstance(options, gymnasium.Options):
        from cuarl.env.gymnasium.backend import option_task

        one = option_task(options)
        made = () if one is None else (one,)
    elif isinstance(options, browsergym.Options):
        from cuarl.env.browsergym.backend import option_tasks

        made = option_tasks(options)
    if not made:
        return None
    given = next((name for name in _FILTERS if getattr(config, name)), None)
    if given is not None:
        raise ConfigError(
            f"{given} selects among known tasks, and the task was made of options",
            where=f"--env {options.type}",
            hint="leave one of them out",
        )
    return Selection(tuple(made))


def _grounding(options: grounding.Options, config: ExperimentConfig) -> Selection:
    """The pairs of a file, or those of them that are named."""
    from cuarl.env.grounding.backend import option_tasks

    if config.category or config.difficulty or config.split:
        raise ConfigError(
            "pairs have no category, difficulty or split", where="--grounding", hint="--tasks 'GLOB', or --limit"
        )
    found = option_tasks(options)
    kept, counts = apply(
        _named(found, config.eval_tasks or config.tasks),
        Filters(limit=config.limit, seed=config.seed if config.limit else None),
    )
    require_some(kept, counts, len(found))
    return Selection(tuple(kept))


def _openenv(options: openenv.Options, config: ExperimentConfig, settings: Settings, role: Role) -> Selection:
    """The tasks that a server lists, or the one that options make."""
    from cuarl.env.openenv.backend import listed_task, option_task

    entries = _asked(options, settings, lambda server: server.tasks(SPLITS[role]))
    if not entries and role == "eval":
        entries = _asked(options, settings, lambda server: server.tasks(SPLITS["train"]))
    if not entries:
        return Selection((option_task(options),))
    found = [listed_task(entry, options) for entry in entries]
    wanted = config.eval_tasks or config.tasks if role == "eval" else config.tasks
    kept, counts = apply(
        _named(found, wanted),
        Filters(
            categories=config.category,
            difficulties=config.difficulty,
            splits=config.split,
            limit=config.limit,
            seed=config.seed if config.limit else None,
        ),
    )
    require_some(kept, counts, len(found))
    return Selection(tuple(kept))


def _named(tasks: Sequence[Task], wanted: Sequence[str]) -> list[Task]:
    """The tasks of these ids or globs; all without any. Raises TaskError for one that picks none."""
    if not wanted:
        return list(tasks)
    for one in wanted:
        if not any(fnmatchcase(task.id, one) for task in tasks):
            raise TaskError(f'there is no task "{one}"{did_you_mean(one, [t.id for t in tasks])}', where="--tasks")
    return [task for task in tasks if any(fnmatchcase(task.id, one) for one in wanted)]


def _asked(options: openenv.Options, settings: Settings, question: Any) -> Any:
    """What the server answers, before anything starts. Raises PrerequisiteError."""
    from cuarl.env.openenv.backend import configured, reachable

    async def ask() -> Any:
        server = configured(options, settings)
        try:
            return await question(server)
        finally:
            await server.close()

    with reachable():
        return signals.run(ask)
