"""From options and an OpenEnv server to tasks and environments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import EnvFields, ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Capabilities, Env
from cuarl.env.foreign.mapping import Table, read_table
from cuarl.env.openenv.client import Server, require_websockets
from cuarl.env.openenv.dialect import ACTION_TITLE
from cuarl.env.openenv.env import OpenEnvEnv, Terms
from cuarl.errors import ConfigError, PrerequisiteError, RolloutError
from cuarl.settings import Settings
from cuarl.tasks.asked import made_task, read_arguments, read_check
from cuarl.tasks.task import Check, Task, TaskInstance

BROWSERGYM = "action_str"
"""The field of actions of OpenEnv's servers of BrowserGym."""
SUCCESS = (Check(path="return", op="ge", value=1),)
MAX_STEPS = 1000
"""Of a task that options make: ``max_turns`` is lower."""


def server(config: EnvFields, token: str | None) -> Server:
    """The server that the options name. Raises ConfigError, MissingExtra."""
    require_websockets()
    if config.openenv_url is None:
        raise ConfigError(
            "there is no OpenEnv server named", where="--env openenv", hint="--openenv-url http://HOST:PORT"
        )
    if config.openenv_actions != "auto":
        read_table(config.openenv_actions, "openenv_actions")
    return Server(config.openenv_url, token)


def configured(config: ExperimentConfig, settings: Settings) -> Server:
    """The server that the options name, with the token of the settings."""
    token = settings.openenv_token
    return server(config, token.get_secret_value() if token else None)


@contextmanager
def reachable() -> Iterator[None]:
    """What goes wrong inside means that the server can't be asked. Raises PrerequisiteError."""
    try:
        yield
    except RolloutError as error:
        raise PrerequisiteError(
            f"the OpenEnv server can't be asked: {error.what}", where=error.where, hint="--openenv-url http://HOST:PORT"
        ) from error


def option_task(config: EnvFields) -> Task:
    """The task of a server that has no list of tasks. Raises ConfigError."""
    hint = "--openenv-success 'return ge 1'"
    checks = [read_check(text, where="openenv_success", hint=hint) for text in config.openenv_success]
    if config.openenv_goal is None and config.openenv_goal_from is None:
        raise ConfigError(
            "the server lists no tasks, so the agent must be told what to do", where=config.openenv_url,
            hint="--openenv-goal 'Press the red button', or --openenv-goal-from observation.goal",
        )  # fmt: skip
    preset = {"reset": read_arguments(config.openenv_reset, "openenv_reset")}
    return made_task("openenv", "openenv", config.openenv_goal or "", checks or SUCCESS, preset, max_steps=MAX_STEPS)


def listed_task(entry: Any, config: EnvFields) -> Task:
    """A task of a server's list: a name, or an object with ``id``. What it says beside is for its environment's device."""
    facts = entry if isinstance(entry, Mapping) else {"id": entry}
    key = next((key for key in ("id", "task_id", "name") if facts.get(key)), None)
    if key is None:
        raise ConfigError(f"the server lists a task without an id: {json.dumps(entry)[:100]}", where=config.openenv_url)
    goal = config.openenv_goal or str(facts.get("goal") or facts.get("description") or "")
    known = {key: facts[key] for key in ("category", "difficulty", "max_steps") if key in facts}
    device = {key: (facts[key],) for key in ("device", "actions") if key in facts}
    hint = "--openenv-success 'return ge 1'"
    checks = [read_check(text, where="openenv_success", hint=hint) for text in config.openenv_success]
    reset = {
        **read_arguments(config.openenv_reset, "openenv_reset"),
        "task_id" if key == "task_id" else "task": facts[key],
    }
    return Task(
        id=str(facts[key]), description="{goal}", env="openenv", preset={"reset": "{reset}", **{key: f"{{{key}}}" for key in device}},
        checks=tuple(checks or (() if device else SUCCESS)), params={"goal": (goal,), "reset": (reset,), **device}, **known,
    )  # fmt: skip


def terms(config: EnvFields, schema: Mapping[str, Any], task: TaskInstance) -> Terms:
    """How the server is spoken to, by what it says about its actions. Raises ConfigError if that does not tell."""
    action = schema.get("action") or {}
    if config.openenv_actions == "auto" and action.get("title") == ACTION_TITLE:
        refuse_idle(config, ["openenv_picture", "openenv_goal_from"], "servers of cuarl's own say where these are")
        if "device" in task.preset:
            refuse_idle(config, ["openenv_device"], "the server says which device it has")
        actions = frozenset(task.preset.get("actions", ())) | {"answer", "finish"}
        return Terms(Capabilities(actions, state=False, kind=task.preset.get("device", config.openenv_device)), None)
    table = _table(config, action)
    return Terms(
        Capabilities(table.kinds, state=True, kind=config.openenv_device), table, config.openenv_picture,
        config.openenv_goal_from,
    )  # fmt: skip


def _table(config: EnvFields, action: Mapping[str, Any]) -> Table:
    if config.openenv_actions != "auto":
        return read_table(config.openenv_actions, "openenv_actions")
    fields = list(action.get("properties", {}))
    if BROWSERGYM in fields:
        from cuarl.env.browsergym.env import calls

        table = calls(config.openenv_device)
        return read_table({rule: {BROWSERGYM: call} for rule, call in table.items()}, "openenv_actions")
    raise ConfigError(
        f"it does not tell what an action of cuarl is there; its actions have {', '.join(fields) or 'no fields'}",
        where=config.openenv_url, hint="--openenv-actions '{click: {x: $x, y: $y}}', see docs/guides/openenv.md",
    )  # fmt: skip


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Sessions of an OpenEnv server, which is asked how to speak to it when the first is to start."""
    stranger = next((task for task in tasks if task.env != "openenv"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for openenv", where="--env openenv")
    server = configured(config, settings)
    schema: dict[str, Any] = {}

    async def start() -> None:
        with reachable():
            schema.update(await server.schema())
        for task in tasks[:1]:
            terms(config, schema, task.instantiate(0))

    async def make(task: TaskInstance) -> Env:
        return OpenEnvEnv(server, terms(config, schema, task))

    return Backend(make, start=start, close=server.close, at_most=config.openenv_sessions)
