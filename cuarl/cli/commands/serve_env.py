"""``cuarl serve-env``: environments for any learner that speaks OpenEnv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from cuarl.cli.help import HelpCommand
from cuarl.cli.options import Request, chosen, experiment_options
from cuarl.cli.usage import finite
from cuarl.config.schema import EnvFields, ExperimentConfig, TaskFields
from cuarl.env.backend import Backend
from cuarl.env.openenv.client import require_websockets
from cuarl.rollout.driven import Driven
from cuarl.tasks.check import verdict
from cuarl.tasks.task import Task, TaskInstance
from cuarl.terminal.output import note, print_json, print_plan
from cuarl.web.listen import bind, require_web, serving
from cuarl.web.rules import is_loopback, names_of
from cuarl.workflow import environments, signals
from cuarl.workflow import episodes as parts

if TYPE_CHECKING:
    from cuarl.env.base import Capabilities
    from cuarl.serve.openenv import EnvService

app = typer.Typer()

_CLIENTS = ("max_task_time_seconds", "max_turn_time_seconds", "max_concurrent_rollouts", "workers", "max_failed_share")
"""What the learner at the other end decides."""


@app.command(
    cls=HelpCommand,
    epilog="""\b
Examples:
  cuarl serve-env --tasks settings
  cuarl serve-env --env browser --tasks miniwob --sessions 8 --port 9000
  cuarl rollout --env openenv --openenv-url http://127.0.0.1:8000 --agent random""",
)
@experiment_options(TaskFields, *(key.name for key in chosen([EnvFields]) if key.name not in _CLIENTS))
def serve_env(
    request: Request,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs CUARL_SERVE_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name that clients may ask for besides this machine's own; repeatable.")
    ] = None,
    sessions: Annotated[int, typer.Option(min=1, help="Most sessions at the same time.")] = 16,
    idle: Annotated[
        float, typer.Option(callback=finite, min=1, help="Seconds after which an idle session is ended.")
    ] = 3600.0,
) -> None:
    """Serve environments to any learner that speaks OpenEnv, one session for each WebSocket.

    A reset names a task (any of the selected ones) and a seed; a step is an action of cuarl's. The last answer of an
    episode has the verdict. Ends with Ctrl-C.
    """
    require_web()
    require_websockets()
    config, settings = request.config, request.settings
    splits = {"train": parts.select_tasks(config, settings, "train", note).tasks}
    if config.eval_tasks:
        splits["test"] = parts.select_tasks(config, settings, "eval", note).tasks
    everything = [task for tasks in splits.values() for task in tasks]
    environments.check(config, everything, settings)
    served = environments.backend(config, everything, settings)
    if request.dry_run:
        _print_plan(request, splits, host, port)
        return
    token = settings.serve_token.get_secret_value() if settings.serve_token else None
    names = names_of(allow_host or ())
    sock = bind(host, port, token, what="the environments")

    async def work() -> None:
        async with parts.serving(served):
            service = await _service(config, served, splits, everything)
            service.most, service.idle_s, service.token = served.concurrent(sessions), idle, token
            service.local, service.hosts = is_loopback(host), names
            async with serving(service.app(), sock, websockets=True) as url:
                _say(request, url, len(everything))
                await anyio.sleep_forever()

    with suppress(KeyboardInterrupt):
        signals.run(work)


async def _service(
    config: ExperimentConfig, served: Backend, splits: Mapping[str, Sequence[Task]], tasks: Sequence[Task]
) -> EnvService:
    from cuarl.serve.openenv import EnvService

    judge = partial(verdict, side_effects=config.side_effects)

    async def begin(task: TaskInstance, seed: int) -> Driven:
        env = await served.make_env(task)
        return Driven(env, task, max_turns=min(config.max_turns, task.max_steps), judge=judge)

    kinds: dict[str, Capabilities] = {}
    for task in tasks:
        if task.env not in kinds:
            env = await served.make_env(task.instantiate(0))
            kinds[task.env] = env.capabilities
            await env.close()
    return EnvService(splits, begin, kinds, seed=config.seed)


def _say(request: Request, url: str, count: int) -> None:
    if request.json:
        print_json({"event": "listening", "url": url, "tasks": count}, line=True)
    else:
        note(f"serving {count} tasks of {request.config.env.type} at {url} (sessions at /ws); Ctrl-C ends it")


def _print_plan(request: Request, splits: Mapping[str, Sequence[Task]], host: str, port: int) -> None:
    facts: dict[str, Any] = {
        "env": request.config.env.type,
        **{f"{name}_tasks": len(tasks) for name, tasks in splits.items()},
        "address": f"{host}:{port}",
    }
    print_plan(facts, as_json=request.json)
