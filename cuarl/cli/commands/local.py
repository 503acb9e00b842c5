"""``cuarl local``: stand-ins for services, to try environments and trainers without accounts, phones or a cluster."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
import typer

from cuarl.cli.usage import finite
from cuarl.errors import MissingExtra
from cuarl.terminal.output import note
from cuarl.terminal.state import load_settings
from cuarl.web.listen import bind, require_web, serving
from cuarl.workflow import signals

if TYPE_CHECKING:
    from cuarl.local.faults import Faults

app = typer.Typer(no_args_is_help=True, epilog="\b\nStart with:\n  cuarl local gym\n  cuarl local mini-agent")

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")]
Stock = Annotated[bool, typer.Option("--stock", help="Phones with Android's own shell alone, without cuarl-device.")]
Profile = Annotated[Literal["small", "phone", "tall"], typer.Option(help="Size of the simulated phones.")]
Refuse = Annotated[
    float, typer.Option(callback=finite, min=0, max=1, help="Share of requests that are answered with 429.")
]
Break = Annotated[
    float,
    typer.Option(
        "--break",
        callback=finite,
        min=0,
        max=1,
        help="Share of requests that are answered with 500, half of them after they were carried out.",
    ),
]
Drop = Annotated[
    float, typer.Option(callback=finite, min=0, max=1, help="Share of requests whose connection is closed, likewise.")
]
Start = Annotated[
    float, typer.Option("--start-seconds", callback=finite, min=0, help="Most seconds that a device takes to start.")
]
GBoxKey = Annotated[str, typer.Option(help="What clients must send as GBOX_API_KEY.")]


@app.callback()
def local() -> None:
    """Serve a stand-in for a service on this machine until interrupted; prints the variables that lead to it."""


@app.command(epilog="\b\nExamples:\n  cuarl local gbox\n  cuarl local gbox --refuse 0.1 --break 0.05 --start-seconds 3")
def gbox(
    port: Port = 28080,
    key: GBoxKey = "any-key",
    profile: Profile = "small",
    refuse: Refuse = 0.0,
    breaks: Break = 0.0,
    drop: Drop = 0.0,
    start: Start = 0.0,
    stock: Stock = False,
) -> None:
    """GBox: boxes that are simulated phones and desktops, and the model that points (docs/guides/gbox.md)."""
    from cuarl.local.gbox import FakeGBox

    made = FakeGBox(key, profile, _faults(refuse, breaks, drop, start), stock=stock)
    _serve(made.app, port, lambda url: [f"export GBOX_BASE_URL={url}/api/v1 GBOX_API_KEY={key}"])


@app.command(epilog="\b\nExamples:\n  cuarl local gym\n  cuarl local gym --gym-key secret --drop 0.02")
def gym(
    port: Port = 5010,
    gym_key: Annotated[str | None, typer.Option(help="What clients must send as GYM_API_KEY; unset: nothing.")] = None,
    key: GBoxKey = "any-key",
    profile: Profile = "small",
    refuse: Refuse = 0.0,
    breaks: Break = 0.0,
    drop: Drop = 0.0,
) -> None:
    """A gym server with the shipped tasks of the phone, and the GBox that its devices are in (docs/guides/gym.md)."""
    from cuarl.local.gym import BOXES, FakeGym

    made = FakeGym(key=gym_key, box_key=key, profile=profile, faults=_faults(refuse, breaks, drop))
    own = f" GYM_API_KEY={gym_key}" if gym_key else ""
    _serve(
        made.app, port, lambda url: [f"export GYM_BASE_URL={url}{own} GBOX_BASE_URL={url}{BOXES} GBOX_API_KEY={key}"]
    )


@app.command(epilog="\b\nExamples:\n  cuarl local mini-agent --port 3000")
def mini_agent(
    port: Port = 3000,
    key: Annotated[
        str | None, typer.Option(help="What clients must send as GBOX_MINI_AGENT_API_KEY; unset: nothing.")
    ] = None,
    model_key: Annotated[str, typer.Option(help="What it sends to models as their key.")] = "-",
) -> None:
    """gbox-mini-agent: runs agents in executions of a gym, with whatever model a run names (docs/guides/gym.md)."""
    from cuarl.local.mini_agent import FakeMiniAgent

    own = f" GBOX_MINI_AGENT_API_KEY={key}" if key else ""
    made = FakeMiniAgent(key=key, model_key=model_key)
    _serve(made.app, port, lambda url: [f"export GBOX_MINI_AGENT_BASE_URL={url}{own}"])


@app.command(epilog="\b\nExamples:\n  cuarl local kubernetes\n  cuarl local kubernetes --token any-token --desktops")
def kubernetes(
    port: Port = 26443,
    token: Annotated[str | None, typer.Option(help="What clients must send as KUBE_TOKEN; unset: one is made.")] = None,
    desktops: Annotated[
        bool, typer.Option("--desktops", help="Sessions of type linux are real desktops of this machine.")
    ] = False,
    profile: Profile = "small",
    refuse: Refuse = 0.0,
    breaks: Break = 0.0,
    drop: Drop = 0.0,
    start: Start = 0.0,
) -> None:
    """A Kubernetes API server whose pods are simulated devices, and the sessions' proxy (docs/guides/pods.md)."""
    from cuarl.env.leases import Ledger
    from cuarl.local.kubernetes import FakeKubernetes

    token = token or secrets.token_hex(8)
    made = FakeKubernetes(
        token,
        profile=profile,
        faults=_faults(refuse, breaks, drop, start),
        desktops=Ledger(load_settings().sessions_folder) if desktops else None,
    )
    _serve(
        made.app,
        port,
        lambda url: [
            f"export KUBE_API_URL={url} KUBE_TOKEN={token}",
            f"export CUARL_PODS_PROXY_URL={url}   # only to go through the sessions' own proxy",
        ],
    )


@app.command(epilog="\b\nExamples:\n  cuarl local adb --phones 2")
def adb(
    port: Port = 5038,
    phones: Annotated[int, typer.Option(min=1, max=64, help="Phones that are connected.")] = 1,
    profile: Profile = "small",
    stock: Stock = False,
) -> None:
    """An adb server whose devices are simulated phones (docs/guides/android.md)."""
    from cuarl.local.adb import serve
    from cuarl.local.adb_phone import FakePhone
    from cuarl.local.adb_stock import StockPhone

    kind = StockPhone if stock else FakePhone
    connected = [kind(f"cuarl-sim-{number + 1}", profile) for number in range(phones)]
    _until_interrupted(partial(serve, *connected, port=port), lambda at: [f"export ANDROID_ADB_SERVER_PORT={at}"])


@app.command(epilog="\b\nExamples:\n  cuarl local tinker --port 8100")
def tinker(
    port: Port = 8100,
    model: Annotated[
        str, typer.Option(help="Base that is trained and sampled, whatever name clients ask for.")
    ] = "tiny",
) -> None:
    """Tinker: really trains and samples, with this machine's own processors (docs/guides/tinker.md)."""
    try:
        from cuarl.local.tinker import served_base
    except ImportError as error:
        raise MissingExtra("this stand-in speaks Tinker's messages", hint='pip install "cuarl[tinker,web]"') from error

    _serve(served_base(model).app, port, lambda url: [f"export TINKER_BASE_URL={url} TINKER_API_KEY=tml-local-key"])


def _faults(refuse: float, breaks: float, drop: float, start_s: float = 0.0) -> Faults:
    from cuarl.local.faults import Faults

    return Faults(refuse, breaks, drop, start_s)


def _serve(make_app: Callable[[], Any], port: int, exports: Callable[[str], Sequence[str]]) -> None:
    """Serve an application.

    Raises MissingExtra without the packages of a server, PrerequisiteError for a port in use.
    """
    require_web()
    sock = bind("127.0.0.1", port, None)

    @asynccontextmanager
    async def listening() -> AsyncIterator[str]:
        async with serving(make_app(), sock) as url:
            yield url

    _until_interrupted(listening, exports)


def _until_interrupted(
    listening: Callable[[], AbstractAsyncContextManager[Any]], exports: Callable[[Any], Sequence[str]]
) -> None:
    async def work() -> None:
        async with listening() as where:
            for line in exports(where):
                # as a shell reads it; flushed, since whoever started this in a pipe waits for it
                print(line, flush=True)
            note("Ctrl-C ends it")
            await anyio.sleep_forever()

    with suppress(KeyboardInterrupt):
        signals.run(work)
