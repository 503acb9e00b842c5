"""From options and tasks to Gymnasium environments: what is checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib.util import find_spec

from pydantic import TypeAdapter, ValidationError

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import EnvFields, ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.gymnasium.env import CHILD, GymnasiumEnv, Source
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


def option_task(config: EnvFields) -> Task | None:
    """The task that ``gymnasium_id`` and its companions say; None if it is not set. Raises ConfigError."""
    if config.gymnasium_id is None:
        if config.gymnasium_goal or config.gymnasium_success or config.gymnasium_kwargs:
            raise ConfigError(
                "gymnasium_goal, _success and _kwargs need gymnasium_id", hint="--gymnasium-id CartPole-v1"
            )
        return None
    if not config.gymnasium_success:
        raise ConfigError("gymnasium_id needs a condition by which an episode is judged", hint=EXAMPLE)
    goal = config.gymnasium_goal or ("" if config.gymnasium_goal_from else None)
    if goal is None:
        raise ConfigError(
            "gymnasium_id needs a goal for the agent",
            hint="--gymnasium-goal 'Keep the pole upright', or --gymnasium-goal-from observation.mission",
        )
    checks = [read_check(text, where="gymnasium_success", hint=EXAMPLE) for text in config.gymnasium_success]
    preset = {"id": config.gymnasium_id, "kwargs": read_arguments(config.gymnasium_kwargs, "gymnasium_kwargs")}
    return made_task("gymnasium", "gymnasium", goal, checks, preset, max_steps=MAX_STEPS)


def check_tasks(tasks: Sequence[Task], config: EnvFields) -> None:
    """Raise ConfigError or TaskError for a task that no environment can be made of."""
    check_actions(config.gymnasium_actions, "gymnasium_actions")
    for task in tasks:
        if task.env != "gymnasium":
            raise ConfigError(
                f"task {task.id} is for {task.env}, and not for gymnasium", where="--env gymnasium",
                hint=f"cuarl tasks show {task.id}, or --gymnasium-id",
            )  # fmt: skip
        instance = task.instantiate(0)
        unknown = sorted(set(instance.preset) - set(PRESETS))
        if unknown or "id" not in instance.preset:
            what = f"presets {', '.join(unknown)}" if unknown else "has no id of an environment"
            raise TaskError(f"task {task.id} {what}", hint=f"its preset has id, and perhaps {', '.join(PRESETS[1:])}")
        if not task.checks:
            raise TaskError(f"task {task.id} has no checks", hint="checks: [{path: return, op: ge, value: 1}]")
        check_actions(source(config, instance).actions, f"task {task.id}")


def check_options(config: EnvFields, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that none of ``tasks``, which are all of a run's, can honour."""
    for name in ("actions", "picture", "scale", "repeat", "device", "goal_from"):
        if tasks and all(name in task.preset for task in tasks):
            refuse_idle(config, [f"gymnasium_{name}"], "each task presets it")


def source(config: EnvFields, task: TaskInstance) -> Source:
    """The environment of a task: what its preset says over what the options say. Raises TaskError for what can't be."""
    chosen = {
        "actions": config.gymnasium_actions, "picture": config.gymnasium_picture, "scale": config.gymnasium_scale,
        "repeat": config.gymnasium_repeat, "device": config.gymnasium_device, "goal_from": config.gymnasium_goal_from,
    }  # fmt: skip
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


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Environments of Gymnasium, each in a worker."""
    require_gymnasium()
    check_tasks(tasks, config)
    pool = Pool(Ledger(settings.sessions_folder), CHILD)

    async def make(task: TaskInstance) -> Env:
        return await GymnasiumEnv.opened(pool, source(config, task))

    return Backend(make, close=pool.close, at_most=config.gymnasium_processes)
