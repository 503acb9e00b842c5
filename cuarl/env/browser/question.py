"""A page's question (``confirm``, ``prompt``) that the policy answers: the page stands still until then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from cuarl.keys import named
from cuarl.types import Action, Answer, Button, Finish, Key, TypeText, Wait

T = TypeVar("T")


class Question:
    """The question that is open, if one is."""

    def __init__(self) -> None:
        self._dialog: Any = None
        self._waiting: set[anyio.CancelScope] = set()

    @property
    def is_open(self) -> bool:
        """Whether the page waits for an answer."""
        return self._dialog is not None

    def asked(self, dialog: Any) -> None:
        """A page asks (Playwright's ``Dialog``): whatever is waited for of it is not answered before this is."""
        self._dialog = dialog
        for scope in self._waiting:
            scope.cancel()

    async def unless_asked(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """What ``ask`` gives; None if the page asks meanwhile, or did before."""
        if self.is_open:
            return None
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                return await ask()
            finally:
                self._waiting.discard(scope)
        return None

    def refusal(self, action: Action) -> str:
        """Why an action can't be carried out while the question is open; empty if it can."""
        if self._dialog is None or isinstance(action, Wait | Answer | Finish) or _choice(action) is not None:
            return ""
        types = self._dialog.type == "prompt"
        if types and isinstance(action, TypeText):
            return ""
        return "the page asks first: Enter is OK, Escape is Cancel" + ("; or type the answer" if types else "")

    async def answer(self, action: Action) -> None:
        """Answer it by an action that was not refused; a wait leaves it open. Raises Playwright's Error."""
        if isinstance(action, TypeText):
            await self._close(accept=True, text=action.text)
        elif (accept := _choice(action)) is not None:
            await self._close(accept=accept)

    async def cancel(self) -> None:
        """Answer it by Cancel, if it is open: nothing can be read of a page that asks."""
        if self.is_open:
            await self._close(accept=False)

    async def _close(self, *, accept: bool, text: str | None = None) -> None:
        dialog, self._dialog = self._dialog, None
        if accept:
            await dialog.accept((dialog.default_value if text is None else text) if dialog.type == "prompt" else None)
        else:
            await dialog.dismiss()


def _choice(action: Action) -> bool | None:
    """The button that an action presses: True for OK, False for Cancel; None for neither."""
    match action:
        case Button(name="enter" | "back" as name):
            return name == "enter"
        case Key(keys=(key,)):
            found = named(key)
            return {"Return": True, "KP_Enter": True, "Escape": False}.get(found.x) if found else None
    return None
