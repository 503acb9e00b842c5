"""Choosing a file that a page asks for: a browser's own window for it is in no picture, so its name is typed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cuarl.types import Action, TypeText, Wait

MOST_NAMES = 20
"""Files that are told by name."""
CANT = "the page asked for a file, which can't be chosen here"


class Uploads:
    """The files that an episode may hand to its pages, and the page's question for one while it is open."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder.resolve() if folder else None
        self._asking: Any = None

    @property
    def asked_for(self) -> bool:
        """Whether the page waits for a file."""
        return self._asking is not None

    def asked(self, chooser: Any, note: Callable[[str], None]) -> None:
        """A page asks for a file (Playwright's ``FileChooser``)."""
        if self._folder is None:
            note(CANT)
            return
        self._asking = chooser
        note(f"the page asks for a file; type the name of one to choose it: {self._names()}")

    def refusal(self, action: Action) -> str:
        """Why an action can't be carried out while a file is asked for; empty if it can.

        Whatever is done instead of naming a file leaves the question unanswered.
        """
        if self._asking is None or isinstance(action, Wait):
            return ""
        if not isinstance(action, TypeText):
            self._asking = None
            return ""
        return "" if self._path(action.text) else f'there is no file "{action.text}" to choose: {self._names()}'

    async def choose(self, name: str) -> None:
        """Give the page the file that was named. Raises Playwright's Error."""
        chooser, self._asking = self._asking, None
        await chooser.set_files(self._path(name))

    def _path(self, name: str) -> Path | None:
        """A file of the folder; links that lead out of it are none."""
        name = name.strip()
        if self._folder is None or Path(name).name != name:
            return None
        path = (self._folder / name).resolve()
        return path if path.is_file() and path.is_relative_to(self._folder) else None

    def _names(self) -> str:
        found = sorted(path.name for path in self._folder.iterdir()) if self._folder else []
        kept = [name for name in found if self._path(name)]
        return ", ".join(kept[:MOST_NAMES]) + (" …" if len(kept) > MOST_NAMES else "") or "there is none"
