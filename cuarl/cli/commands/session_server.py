"""``cuarl sessions serve``: this machine's device as a session, which is what runs in a pod."""

from __future__ import annotations

import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from cuarl.cli.idle import given_options, refuse
from cuarl.env.pods.session import TOKEN
from cuarl.errors import ConfigError
from cuarl.terminal.output import note, print_json
from cuarl.terminal.state import load_settings
from cuarl.web.listen import bind, require_web, serving
from cuarl.web.rules import is_loopback, names_of
from cuarl.workflow import signals

if TYPE_CHECKING:
    from cuarl.env.pods.hosted import HostedSession
    from cuarl.settings import Settings
    from cuarl.tasks.task import TaskInstance

EPILOG = """\b
Examples:
  cuarl sessions serve linux
  cuarl sessions serve phone --task train_02_enable_wifi --seed 3
  CUARL_SESSION_TOKEN=… cuarl sessions serve desktop --host 0.0.0.0"""


def serve(
    device: Annotated[str, typer.Argument(help="What is shown: linux, a real desktop; phone or desktop, simulated.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs CUARL_SESSION_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name that clients may ask for besides this machine's own; repeatable.")
    ] = None,
    screen: Annotated[
        str | None, typer.Option(help="Size of a linux desktop, as WIDTHxHEIGHT; unset means 1280x800.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Screen of a simulated device: small, phone (unset means this) or tall.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Task to set up, by id; else the client sets one up.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of that task and of the device; unset means 0.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print where it listens as JSON.")] = False,
) -> None:
    """Serve one device as a session that speaks /act and /progress: what runs in a pod of --env pods.

    Every session serves one episode. Clients send CUARL_SESSION_TOKEN in the header X-Session-Token; where it is not
    set, a token is made and printed. Ends with Ctrl-C or SIGTERM, and with it the device.
    """
    require_web()
    from cuarl.env.pods.devices import SESSION_TYPES
    from cuarl.env.pods.server import SessionServer

    if device not in SESSION_TYPES:
        raise ConfigError(f'there is no device "{device}"', hint=f"cuarl sessions serve {SESSION_TYPES[0]}")
    idle = {"--profile": profile} if device == "linux" else {"--screen": screen}
    refuse(given_options(idle), f"on a {'linux desktop' if device == 'linux' else 'simulated device'}")
    if task is None and seed is not None:
        refuse(["--seed"], "without --task, since each client's reset has its own seed")
    settings = load_settings()
    token = settings.session_token.get_secret_value() if settings.session_token else None
    wanted = _instance(task, seed or 0, device) if task else None
    session = _session(settings, device, screen or "1280x800", profile or "phone")
    sock = bind(host, port, token, what="the session", variable="CUARL_SESSION_TOKEN")
    # a GET acts, and every page in a browser of this machine can send one here: never without a token
    made = None if token else secrets.token_urlsafe(24)
    app = SessionServer(
        session, device, token or made or "", local=is_loopback(host), hosts=names_of(allow_host or ())
    ).app()
    with suppress(KeyboardInterrupt):
        signals.run(partial(_until_stopped, app, sock, session, wanted, seed or 0, made, as_json))


async def _until_stopped(
    app: Any, sock: Any, session: HostedSession, task: TaskInstance | None, seed: int, made: str | None, as_json: bool
) -> None:
    """``made`` is a token that nobody has been told yet."""
    if task is not None:  # before it listens: a session that answers is ready
        await session.reset(task, seed)
    async with serving(app, sock, close=session.close) as url:
        if as_json:
            print_json({"event": "listening", "url": url, **({"token": made} if made else {})}, line=True)
        else:
            note(f"a session at {url} (/act, /progress); Ctrl-C ends it")
            if made:
                note(f"clients send its token in the header {TOKEN}: {made}")
        await anyio.sleep_forever()


def _session(settings: Settings, device: str, screen: str, profile: str) -> HostedSession:
    from cuarl.env.leases import Ledger
    from cuarl.env.pods.devices import make
    from cuarl.env.pods.hosted import HostedSession

    try:
        width, height = map(int, screen.split("x"))
    except ValueError as error:
        raise ConfigError(f"{screen} is no size of a screen", where="--screen", hint="--screen 1280x800") from error
    make_env = partial(make, device, Ledger(settings.sessions_folder), screen=(width, height), profile=profile)
    make_env()  # what this machine lacks is said now, and not to the first client
    return HostedSession(make_env)


def _instance(task_id: str, seed: int, device: str) -> TaskInstance:
    from cuarl.tasks.source import load

    (task,) = load([task_id], role=None).tasks
    if task.env != device:
        raise ConfigError(
            f"task {task.id} is for {task.env}",
            where=f"sessions serve {device}",
            hint=f"cuarl sessions serve {task.env} --task {task.id}",
        )
    return task.instantiate(seed)
