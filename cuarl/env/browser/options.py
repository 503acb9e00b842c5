"""What can be chosen about a browser, and which addresses it may reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, PositiveFloat, PositiveInt

from cuarl.config.fields import EnvOptions, Words

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig
    from cuarl.env.browser.replay import Recordings
    from cuarl.env.browser.storage import Storage

Settle = Literal["frame", "idle", "fixed"]
Reset = Literal["load", "script"]
Dialogs = Literal["accept", "dismiss", "ask"]
After = Literal["writes", "loads", "nothing"]
Unrecorded = Literal["fail", "block", "network"]

INNER = ("about", "data", "blob")
"""Schemes of addresses that a page makes for itself."""


class Options(EnvOptions):
    """The options of ``env: browser``."""

    capacity = frozenset({"contexts", "har_record"})

    type: Literal["browser"] = "browser"
    actions: Literal["desktop", "phone"] = "desktop"
    """What a policy can do in a browser: mouse and keyboard, or a phone's touches (the shipped base knows these
    best)."""
    viewport: Annotated[str, Field(pattern=r"^[1-9]\d{2,3}x[1-9]\d{2,3}$")] = "1280x720"
    """Size of a page given by its address, as WIDTHxHEIGHT; pages of MiniWoB++ are 160x210."""
    scale: Annotated[float, Field(ge=1, le=4)] = 1.0
    """Pixels of the screenshot for each pixel of the page."""
    settle: Literal["auto", "frame", "idle", "fixed"] = "auto"
    """When the screenshot is taken after an action: at once (frame), once it is still (idle), after a fixed time; auto
    is frame for MiniWoB++ and idle elsewhere."""
    settle_ms: PositiveFloat = 100.0
    """The fixed time, or how long a page must be still with idle."""
    reset: Literal["load", "script"] = "load"
    """How an episode on MiniWoB++ begins: its page is loaded in a new context (load), or a kept page starts anew by its
    own script, which is faster but leaves a trace of the last episode on some pages (script)."""
    contexts: PositiveInt = 16
    """Most pages at the same time in a browser, within max_concurrent_rollouts."""
    origins: Words = ()
    """Further origins (http://HOST:PORT) that pages may load from; a task's own origin or folder is always allowed."""
    dialogs: Dialogs = "accept"
    """How confirm and prompt dialogs are answered, which a page's picture does not show: by OK, by Cancel, or by the
    policy (ask), which is told of them in words."""
    instruction: Literal["keep", "mask"] = "keep"
    """Whether pages of MiniWoB++ show their instruction, or only the prompt tells it."""

    storage: str | None = None
    """File of cookies and storage that each episode begins with, so that it is signed in; cuarl tasks sign-in writes
    it."""
    har: str | None = None
    """Recorded HTTP (a file, or a folder of *.har) that is replayed in the place of servers, which may be off."""
    har_after: After = "writes"
    """What must have gone before as in the recording for an answer to be given: the same requests that change something
    (POST and the like), the same pages loaded, too, or nothing."""
    har_missing: Unrecorded = "fail"
    """What becomes of a request that was not recorded: it ends the episode with an error that names it, is refused, or
    is made."""
    har_record: str | None = None
    """Folder that each episode's HTTP is recorded in, for env.har."""

    def idle(self) -> Iterator[tuple[str, str]]:
        """A time that nothing waits for, and what is about a recording where none is replayed."""
        if self.settle == "frame":
            yield "env.settle_ms", "env.settle frame, which waits for nothing"
        if self.har is None:
            yield "env.har_after", "env.har unset"
            yield "env.har_missing", "env.har unset"

    def problems(self, config: ExperimentConfig) -> Iterator[str]:
        """A recording of a recording."""
        if self.har is not None and self.har_record is not None:
            yield "env.har replays and env.har_record records: set one of them"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserOptions:
    """How pages are shown. Sizes are CSS pixels; a screenshot has ``scale`` times as many pixels each way."""

    viewport: tuple[int, int] = (1280, 720)
    scale: float = 1.0
    settle: Settle | None = None
    """None leaves it to the kind of page."""
    settle_ms: float = 100.0
    """Quiet time with ``idle``, or the fixed time."""
    reset: Reset = "load"
    """Whether an episode loads its page in a new context, or goes on with a kept one that restarts by its own
    script."""
    answer_s: float = 15.0
    """How long the browser may take to answer before it counts as hung."""
    kind: Literal["desktop", "phone"] = "desktop"
    """Whether a policy is offered a desktop's actions or a phone's, whose touches are those of a mouse here."""
    dialogs: Dialogs = "accept"
    """How ``confirm`` and ``prompt`` are answered."""
    fence: Fence = field(default_factory=lambda: Fence())
    traffic: TrafficOptions = field(default_factory=lambda: TrafficOptions())

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the screenshots."""
        return round(self.viewport[0] * self.scale), round(self.viewport[1] * self.scale)


@dataclass(frozen=True, slots=True)
class TrafficOptions:
    """What of HTTP is not as usual. Nothing by default."""

    storage: Storage | None = None
    """Cookies and storage that each episode begins with."""
    recordings: Recordings | None = None
    """What is answered in the place of servers."""
    unrecorded: Unrecorded = "fail"
    """Whether a request of which nothing was recorded ends the episode with an error, is refused, or is made."""
    record_to: Path | None = None
    """Folder of recordings."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The addresses that may be loaded: files in some folders, and some origins. Nothing by default."""

    folders: tuple[Path, ...] = ()
    origins: frozenset[str] = frozenset()

    def allows(self, url: str) -> bool:
        """Whether a request for ``url`` may be made."""
        try:
            parts, origin = urlsplit(url), origin_of(url)
        except ValueError:  # what can't be read is not let through
            return False
        if parts.scheme in INNER:
            return True
        if parts.scheme == "file":
            path = Path(unquote(parts.path)).resolve()
            return parts.hostname in (None, "localhost") and any(path.is_relative_to(folder) for folder in self.folders)
        return origin in self.origins

    @property
    def offline(self) -> bool:
        """Whether no network is needed."""
        return not self.origins


def origin_of(url: str) -> str:
    """``scheme://host:port`` with the port written out; a web socket counts as the page's own scheme.

    Raises ValueError for an address that can't be read.
    """
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    port = parts.port or {"http": 80, "https": 443}.get(scheme, 0)
    return f"{scheme}://{(parts.hostname or '').lower()}:{port}"
