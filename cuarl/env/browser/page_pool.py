"""Pages that wait for their next episode, where episodes start a page anew by its own script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuarl.env.browser.tabs import Tabs


@dataclass(frozen=True, slots=True)
class PooledPage:
    """A page that no episode uses."""

    kind: object
    """How its context was made: options and scripts. Only episodes that want the same can have it."""
    address: str
    context: Any
    tabs: Tabs
    episodes: int
    """How many it has served."""


class PagePool:
    """As many pages as ever were open at the same time, the longest unused first."""

    def __init__(self) -> None:
        self._pages: list[PooledPage] = []

    def keep(self, page: PooledPage) -> None:
        """Have ``page`` wait."""
        self._pages.append(page)

    def take(self, kind: object, address: str) -> PooledPage | None:
        """A page of this kind, if possible one that shows ``address``; None if none waits. It waits no longer."""
        fitting = [page for page in self._pages if page.kind == kind]
        found = next((page for page in fitting if page.address == address), fitting[0] if fitting else None)
        if found is not None:
            self._pages.remove(found)
        return found

    def forget(self) -> None:
        """The browser is gone, and all pages with it."""
        self._pages.clear()
