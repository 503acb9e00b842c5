"""From options and tasks to Gymnasium environments: what is checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib.util import find_spec

from pydantic import TypeAdapter, ValidationError

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend, unsolved
from cuarl.env.base import Env
from cuarl.env.gymnasium.env import CHILD, GymnasiumEnv, Source
from cuarl.env.gymnasium.options import Options
from cuarl.env.gymnasium.tables import check_actions
from cuarl.env.leases import Ledger
from cuarl.env.workers.pool import Pool
from cuarl.errors import ConfigError, MissingExtra, TaskError
from cuarl.settings import Settings
from cuarl.tasks.asked import made_task, read_arguments, read_check
from cuarl.tasks.task import Task, TaskInstance

PRESETS = tuple(field.name for field in fields(Source) if field.name != "beside")
SOURCE = TypeAdapter(Source)
EXAMPLE = "--gymnasium-success 'return ge 195'"
MAX_STEPS = 1000
"""Of a task that options make: ``max_turns`` is lower."""


def require_gymnasium() -> None:
    """Raise MissingExtra if Gymnasium is not installed (it is found without being imported)."""
    if find_spec("gymnasium") is None:
        raise MissingExtra("Gymnasium is not installed", hint="pip install 'cuarl[gymnasium]'")


def option_task(options: Options) -> Task | None:
    """The task that ``env.id`` and its companions say; None if it is not set. Raises ConfigError."""
    if options.id is None:
        if options.goal or options.success or options.kwargs:
            raise ConfigError("env.goal, env.success and env.kwargs need env.id", hint="--gymnasium-id CartPole-v1")
        return None
    if not options.success:
        raise ConfigError("env.id needs a condition by which an episode is judged", hint=EXAMPLE)
    goal = options.goal or ("" if options.goal_from else None)
    if goal is None:
        raise ConfigError(
            "env.id needs a goal for the agent",
            hint="--gymnasium-goal 'Keep the pole upright', or --gymnasium-goal-from observation.mission",
        )
    checks = [read_check(text, where="env.success", hint=EXAMPLE) for text in options.success]
    preset = {"id": options.id, "kwargs": read_arguments(options.kwargs, "env.kwargs")}
    return made_task("gymnasium", "gymnasium", goal, checks, preset, max_steps=MAX_STEPS)


def check_tasks(tasks: Sequence[Task], options: Options) -> None:
    """Raise ConfigError or TaskError for a task that no environment can be made of."""
    check_actions(options.actions, "env.actions")
    for task in tasks:
        if task.env != "gymnasium":
            raise ConfigError(
                f"task {task.id} is for {task.env}, and not for gymnasium",
                where="--env gymnasium",
                hint=f"cuarl tasks show {task.id}, or --gymnasium-id",
            )
        instance = task.instantiate(0)
        unknown = sorted(set(instance.preset) - set(PRESETS))
        if unknown or "id" not in instance.preset:
            what = f"presets {', '.join(unknown)}" if unknown else "has no id of an environment"
            raise TaskError(f"task {task.id} {what}", hint=f"its preset has id, and perhaps {', '.join(PRESETS[1:])}")
        if not task.checks:
            raise TaskError(f"task {task.id} has no checks", hint="checks: [{path: return, op: ge, value: 1}]")
        check_actions(source(options, instance).actions, f"task {task.id}")


def check_options(options: Options, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    for name in ("actions", "picture", "scale", "repeat", "device", "goal_from"):
        if tasks and all(name in task.preset for task in tasks):
            refuse_idle(options, [name], "each task presets it")


def source(options: Options, task: TaskInstance) -> Source:
    """The environment of a task: what its preset says over what the options say. Raises TaskError for what can't be."""
    chosen = {
        "actions": options.actions,
        "picture": options.picture,
        "scale": options.scale,
        "repeat": options.repeat,
        "device": options.device,
        "goal_from": options.goal_from,
    }
    try:
        return SOURCE.validate_python({**chosen, **task.preset})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"][:1]))
        raise TaskError(
            f"task {task.task_id}: {name} can't be {wrong['input']!r}",
            where=f"preset.{name}",
            hint="see docs/guides/gymnasium.md",
        ) from error


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Environments of Gymnasium, each in a worker."""
    require_gymnasium()
    check_tasks(tasks, options)
    pool = Pool(Ledger(settings.sessions_folder), CHILD)

    async def make(task: TaskInstance) -> Env:
        return await GymnasiumEnv.opened(pool, source(options, task))

    return Backend(make, close=pool.close, at_most=options.processes, may_solve=unsolved)
