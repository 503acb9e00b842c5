"""From options and an OpenEnv server to tasks and environments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend, unsolved
from cuarl.env.base import Capabilities, Env
from cuarl.env.foreign.mapping import Table, read_table
from cuarl.env.openenv.client import Server, require_websockets
from cuarl.env.openenv.dialect import ACTION_TITLE
from cuarl.env.openenv.env import OpenEnvEnv, Terms
from cuarl.env.openenv.options import Options
from cuarl.errors import ConfigError, PrerequisiteError, RolloutError
from cuarl.settings import Settings
from cuarl.tasks.asked import made_task, read_arguments, read_check
from cuarl.tasks.task import Check, Task, TaskInstance

BROWSERGYM = "action_str"
"""The field of actions of OpenEnv's servers of BrowserGym."""
SUCCESS = (Check(path="return", op="ge", value=1),)
MAX_STEPS = 1000
"""Of a task that options make: ``max_turns`` is lower."""


def server(options: Options, token: str | None) -> Server:
    """The server that the options name. Raises ConfigError, MissingExtra."""
    require_websockets()
    if options.url is None:
        raise ConfigError(
            "there is no OpenEnv server named", where="--env openenv", hint="--openenv-url http://HOST:PORT"
        )
    if options.actions != "auto":
        read_table(options.actions, "env.actions")
    return Server(options.url, token)


def configured(options: Options, settings: Settings) -> Server:
    """The server that the options name, with the token of the settings."""
    token = settings.openenv_token
    return server(options, token.get_secret_value() if token else None)


@contextmanager
def reachable() -> Iterator[None]:
    """What goes wrong inside means that the server can't be asked. Raises PrerequisiteError."""
    try:
        yield
    except RolloutError as error:
        raise PrerequisiteError(
            f"the OpenEnv server can't be asked: {error.what}", where=error.where, hint="--openenv-url http://HOST:PORT"
        ) from error


def option_task(options: Options) -> Task:
    """The task of a server that has no list of tasks. Raises ConfigError."""
    hint = "--openenv-success 'return ge 1'"
    checks = [read_check(text, where="env.success", hint=hint) for text in options.success]
    if options.goal is None and options.goal_from is None:
        raise ConfigError(
            "the server lists no tasks, so the agent must be told what to do",
            where=options.url,
            hint="--openenv-goal 'Press the red button', or --openenv-goal-from observation.goal",
        )
    preset = {"reset": read_arguments(options.reset, "env.reset")}
    return made_task("openenv", "openenv", options.goal or "", checks or SUCCESS, preset, max_steps=MAX_STEPS)


def listed_task(entry: Any, options: Options) -> Task:
    """A task of a server's list: a name, or an object with ``id``.

    What it says beside is for its environment's device.
    """
    facts = entry if isinstance(entry, Mapping) else {"id": entry}
    key = next((key for key in ("id", "task_id", "name") if facts.get(key)), None)
    if key is None:
        raise ConfigError(f"the server lists a task without an id: {json.dumps(entry)[:100]}", where=options.url)
    goal = options.goal or str(facts.get("goal") or facts.get("description") or "")
    known = {key: facts[key] for key in ("category", "difficulty", "max_steps") if key in facts}
    device = {key: (facts[key],) for key in ("device", "actions") if key in facts}
    hint = "--openenv-success 'return ge 1'"
    checks = [read_check(text, where="env.success", hint=hint) for text in options.success]
    reset = {
        **read_arguments(options.reset, "env.reset"),
        "task_id" if key == "task_id" else "task": facts[key],
    }
    return Task(
        id=str(facts[key]),
        description="{goal}",
        env="openenv",
        preset={"reset": "{reset}", **{key: f"{{{key}}}" for key in device}},
        checks=tuple(checks or (() if device else SUCCESS)),
        params={"goal": (goal,), "reset": (reset,), **device},
        **known,
    )


def terms(options: Options, schema: Mapping[str, Any], task: TaskInstance) -> Terms:
    """How the server is spoken to, by what it says about its actions. Raises ConfigError if that does not tell."""
    action = schema.get("action") or {}
    if options.actions == "auto" and action.get("title") == ACTION_TITLE:
        refuse_idle(options, ["picture", "goal_from"], "servers of cuarl's own say where these are")
        if "device" in task.preset:
            refuse_idle(options, ["device"], "the server says which device it has")
        actions = frozenset(task.preset.get("actions", ())) | {"answer", "finish"}
        return Terms(Capabilities(actions, state=False, kind=task.preset.get("device", options.device)), None)
    table = _table(options, action)
    can = Capabilities(table.kinds, state=True, kind=options.device, held=table.holds)
    return Terms(can, table, options.picture, options.goal_from)


def _table(options: Options, action: Mapping[str, Any]) -> Table:
    if options.actions != "auto":
        return read_table(options.actions, "env.actions")
    fields = list(action.get("properties", {}))
    if BROWSERGYM in fields:
        from cuarl.env.browsergym.env import calls

        table = calls(options.device)
        return read_table({rule: {BROWSERGYM: call} for rule, call in table.items()}, "env.actions")
    raise ConfigError(
        f"it does not tell what an action of cuarl is there; its actions have {', '.join(fields) or 'no fields'}",
        where=options.url,
        hint="--openenv-actions '{click: {x: $x, y: $y}}', see docs/guides/openenv.md",
    )


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Sessions of an OpenEnv server, which is asked how to speak to it when the first is to start."""
    stranger = next((task for task in tasks if task.env != "openenv"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for openenv", where="--env openenv")
    server = configured(options, settings)
    schema: dict[str, Any] = {}

    async def start() -> None:
        with reachable():
            schema.update(await server.schema())
        for task in tasks[:1]:
            terms(options, schema, task.instantiate(0))

    async def make(task: TaskInstance) -> Env:
        return OpenEnvEnv(server, terms(options, schema, task))

    return Backend(make, start=start, close=server.close, at_most=options.sessions, may_solve=unsolved)
