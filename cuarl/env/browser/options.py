"""What can be chosen about a browser, and which addresses it may reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

Settle = Literal["frame", "idle", "fixed"]
Reset = Literal["load", "script"]

INNER = ("about", "data", "blob")
"""Schemes of addresses that a page makes for itself."""


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
    """Whether an episode loads its page in a new context, or goes on with a kept one that restarts by its own script."""
    answer_s: float = 15.0
    """How long the browser may take to answer before it counts as hung."""
    kind: Literal["desktop", "phone"] = "desktop"
    """Whether a policy is offered a desktop's actions or a phone's, whose touches are those of a mouse here."""
    accept_dialogs: bool = True
    """Whether ``confirm`` and ``prompt`` are answered by OK."""
    fence: Fence = field(default_factory=lambda: Fence())

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the screenshots."""
        return round(self.viewport[0] * self.scale), round(self.viewport[1] * self.scale)


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
