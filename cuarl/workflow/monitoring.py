"""The monitor put together: its pages, the statistics of evaluations, and tokenizers that say what tokens read."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from cuarl.errors import ConfigError
from cuarl.store.costs import NO_PRICES, Prices
from cuarl.workflow import episodes as parts
from cuarl.workflow import signals

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from cuarl.settings import Settings
    from cuarl.store import Store

_PREFIX = re.compile(r"(/[\w.~-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the monitor is reached, and what it may do."""

    host: str = "127.0.0.1"
    hosts: Sequence[str] = ()
    """Names that browsers may ask for besides this machine's own."""
    prefix: str = ""
    read_only: bool = False
    token: str | None = None
    prices: Prices = NO_PRICES
    still: bool = False
    """Pages that are to be files."""


def serve_monitor(settings: Settings, options: Options, sock: socket.socket, say: Callable[[str], None]) -> None:
    """Serve the store's runs on ``sock`` until the process is told to stop. ``say`` is given the address."""
    from cuarl.web.listen import serving

    with parts.open_store(settings) as store:
        app = monitor_app(store, options)

        async def work() -> None:
            async with serving(app, sock) as url:
                say(f"{url}{_prefix(options.prefix)}/")
                await anyio.sleep_forever()

        with suppress(KeyboardInterrupt):
            signals.run(work)


def prices_of(settings: Settings) -> Prices:
    """The prices that are set."""
    return Prices.model_validate({name: getattr(settings, f"price_{name}") for name in Prices.model_fields})


def write_report(store: Store, run_id: str, folder: Path, prices: Prices = NO_PRICES) -> int:
    """Write a run's pages into ``folder`` as files; gives their number."""
    from cuarl.monitor.web.still import Still
    from cuarl.store.pages import Pages

    app = monitor_app(store, Options(read_only=True, still=True, prices=prices))
    return signals.run(Still(app, Pages(store.engine), run_id, folder).write)


def monitor_app(store: Store, options: Options) -> ASGIApp:
    """The application. Raises ConfigError for a path prefix or a host that is none."""
    from cuarl.evaluate import stats
    from cuarl.monitor.web.app import make_app, open_paths, say
    from cuarl.monitor.web.desk import Desk, Statistics
    from cuarl.monitor.web.ingest import BODY_BYTES, PATH
    from cuarl.monitor.web.login import BrowserToken
    from cuarl.store.pages import Pages
    from cuarl.web.rules import Rules, is_loopback, names_of
    from cuarl.workflow.turn_credit import credit_of

    prefix = _prefix(options.prefix)
    desk = Desk(
        store=store,
        pages=Pages(store.engine),
        statistics=Statistics(rate=stats.clustered_rate, compare=stats.compare),
        pieces=token_texts,
        credit=credit_of,
        prices=options.prices,
        prefix=prefix,
        read_only=options.read_only,
        still=options.still,
    )
    rules = Rules(
        say=say,
        local=is_loopback(options.host),
        hosts=names_of(options.hosts),
        open=open_paths(prefix),
        token=BrowserToken(options.token) if options.token else None,
        linked=True,
        larger={f"{prefix}{PATH}": BODY_BYTES},
    )
    return make_app(desk, rules)


def _prefix(text: str) -> str:
    found = f"/{text.strip('/')}" if text.strip("/") else ""
    if not _PREFIX.fullmatch(found):
        raise ConfigError(f"{text!r} is no path", where="--path-prefix", hint="--path-prefix /monitor")
    return found


# --- what tokens read ----------------------------------------------------------------------------------------------


def token_texts(model: str, ids: Sequence[int]) -> list[str] | None:
    """The text of each token; None where the model's tokenizer is not on this machine."""
    tokenizer = _tokenizer(model) if model else None
    if tokenizer is None:
        return None
    return [str(tokenizer.decode([i], skip_special_tokens=False)) for i in ids]


@lru_cache(maxsize=8)
def _tokenizer(model: str) -> Any | None:
    from tokenizers import Tokenizer

    path = _tokenizer_file(model)
    return Tokenizer.from_file(str(path)) if path is not None and path.is_file() else None


def _tokenizer_file(model: str) -> Path | None:
    """In the shipped model, in a folder, or in the hub's cache; nothing is fetched."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    from cuarl.policy import tiny

    if model == "tiny":
        return Path(tiny.path()) / "tokenizer.json"
    if (Path(model) / "tokenizer.json").is_file():
        return Path(model) / "tokenizer.json"
    try:
        found = try_to_load_from_cache(model, "tokenizer.json")
    except HFValidationError:
        return None
    return Path(found) if isinstance(found, str) else None
