"""Environments of other people's making for commands: the tasks that options make of them, and their backends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from cuarl.config.schema import ExperimentConfig
from cuarl.env.base import Env
from cuarl.errors import ConfigError, PrerequisiteError, RolloutError, TaskError
from cuarl.rollout.spec import EpisodeSpec
from cuarl.settings import Settings
from cuarl.suggest import did_you_mean
from cuarl.tasks.select import Filters, apply, require_some
from cuarl.tasks.source import Selection
from cuarl.tasks.suites import Role
from cuarl.tasks.task import Task
from cuarl.workflow import signals
from cuarl.workflow.backend import Backend

if TYPE_CHECKING:
    from cuarl.env.openenv.client import Server

SPLITS: Mapping[Role, str] = {"train": "train", "eval": "test"}
"""OpenEnv's name for what tasks are for."""
_FILTERS = ("tasks", "eval_tasks", "category", "difficulty", "limit")


def select(config: ExperimentConfig, settings: Settings, role: Role) -> Selection | None:
    """The tasks that options make, or that a server lists; None where tasks are selected as everywhere."""
    if config.env == "openenv":
        return _openenv(config, settings, role)
    made: Sequence[Task] = ()
    if config.env == "gymnasium":
        from cuarl.env.gymnasium.make import option_task

        one = option_task(config)
        made = () if one is None else (one,)
    elif config.env == "browsergym":
        from cuarl.env.browsergym.make import option_tasks

        made = option_tasks(config)
    if not made:
        return None
    given = next((name for name in _FILTERS if getattr(config, name)), None)
    if given is not None:
        raise ConfigError(
            f"{given} selects among known tasks, and the task was made of options", where=f"--env {config.env}",
            hint="leave one of them out",
        )  # fmt: skip
    return Selection(tuple(made))


def gymnasium(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Environments of Gymnasium, each in a worker."""
    from cuarl.env.gymnasium.env import CHILD, GymnasiumEnv
    from cuarl.env.gymnasium.make import check_tasks, require_gymnasium, source
    from cuarl.env.leases import Ledger
    from cuarl.env.workers.pool import Pool

    require_gymnasium()
    check_tasks(tasks, config)
    pool = Pool(Ledger(settings.sessions_folder), CHILD)

    async def make(spec: EpisodeSpec) -> Env:
        return await GymnasiumEnv.opened(pool, source(config, spec.task))

    return Backend(make, close=pool.close, at_most=config.gymnasium_processes)


def browsergym(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Tasks of BrowserGym, each in a worker with browsers of its own."""
    from cuarl.env.browser.browser import find_program
    from cuarl.env.browsergym.env import CHILD, BrowserGymEnv
    from cuarl.env.browsergym.make import check_tasks, require_browsergym, source
    from cuarl.env.leases import Ledger
    from cuarl.env.workers.pool import Pool

    require_browsergym()
    check_tasks(tasks)
    browser = find_program(settings.browser)
    pool = Pool(Ledger(settings.sessions_folder), CHILD)

    async def make(spec: EpisodeSpec) -> Env:
        return await BrowserGymEnv.opened(pool, source(config, spec.task, browser))

    return Backend(make, close=pool.close, at_most=config.browsergym_processes)


def openenv(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Sessions of an OpenEnv server, which is asked how to speak to it when the first is to start."""
    from cuarl.env.openenv.env import OpenEnvEnv
    from cuarl.env.openenv.make import terms

    stranger = next((task for task in tasks if task.env != "openenv"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for openenv", where="--env openenv")
    server = _server(config, settings)
    schema: dict[str, Any] = {}

    async def start() -> None:
        with _reachable():
            schema.update(await server.schema())
        for task in tasks[:1]:
            terms(config, schema, task.instantiate(0))

    async def make(spec: EpisodeSpec) -> Env:
        return OpenEnvEnv(server, terms(config, schema, spec.task))

    return Backend(make, start=start, close=server.close, at_most=config.openenv_sessions)


def _openenv(config: ExperimentConfig, settings: Settings, role: Role) -> Selection:
    """The tasks that a server lists, or the one that options make."""
    from cuarl.env.openenv.make import listed_task, option_task

    entries = _asked(config, settings, lambda server: server.tasks(SPLITS[role]))
    if not entries and role == "eval":
        entries = _asked(config, settings, lambda server: server.tasks(SPLITS["train"]))
    if not entries:
        return Selection((option_task(config),))
    found = [listed_task(entry, config) for entry in entries]
    wanted = config.eval_tasks or config.tasks if role == "eval" else config.tasks
    kept, counts = apply(
        _named(found, wanted),
        Filters(
            categories=config.category, difficulties=config.difficulty, limit=config.limit,
            seed=config.seed if config.limit else None,
        ),
    )  # fmt: skip
    require_some(kept, counts, len(found))
    return Selection(tuple(kept))


def _named(tasks: Sequence[Task], wanted: Sequence[str]) -> list[Task]:
    """The tasks of these ids or globs; all without any. Raises TaskError for one that picks none."""
    if not wanted:
        return list(tasks)
    for one in wanted:
        if not any(fnmatchcase(task.id, one) for task in tasks):
            raise TaskError(
                f'the server has no task "{one}"{did_you_mean(one, [t.id for t in tasks])}', where="--tasks"
            )
    return [task for task in tasks if any(fnmatchcase(task.id, one) for one in wanted)]


def _server(config: ExperimentConfig, settings: Settings) -> Server:
    from cuarl.env.openenv.make import server

    token = settings.openenv_token
    return server(config, token.get_secret_value() if token else None)


def _asked(config: ExperimentConfig, settings: Settings, question: Any) -> Any:
    """What the server answers, before anything starts. Raises PrerequisiteError."""

    async def ask() -> Any:
        server = _server(config, settings)
        try:
            return await question(server)
        finally:
            await server.close()

    with _reachable():
        return signals.run(ask)


@contextmanager
def _reachable() -> Iterator[None]:
    """What goes wrong inside means that the server can't be asked. Raises PrerequisiteError."""
    try:
        yield
    except RolloutError as error:
        raise PrerequisiteError(
            f"the OpenEnv server can't be asked: {error.what}", where=error.where, hint="--openenv-url http://HOST:PORT"
        ) from error
