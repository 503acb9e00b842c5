"""Answers to a page's dialogs, which no picture shows."""

from __future__ import annotations

from typing import Any

import anyio

ANSWERS_S = (0.5, 1.0, 2.0)
"""How long a page may take, again and again, to say that it goes on."""


async def answered(dialog: Any, *, accept: bool) -> bool:
    """Answer ``dialog``: by OK, or by Cancel where that is a choice. Whether its page goes on.

    Chromium can't answer a dialog that opens in the moment in which another page takes over its tab, and hangs that tab
    for good: nothing but closing it helps.
    """
    from playwright.async_api import Error

    page = dialog.page
    try:
        # a page that asks whether it may be left is always let go
        if accept or dialog.type in ("alert", "beforeunload"):
            await dialog.accept(dialog.default_value if dialog.type == "prompt" else None)
        else:
            await dialog.dismiss()
    except Error:
        return page is None or page.is_closed() or await goes_on(page)
    return True


async def goes_on(page: Any) -> bool:
    """Whether ``page`` answers, or is closed, within a few seconds."""
    from playwright.async_api import Error

    for patience in ANSWERS_S:
        try:
            with anyio.move_on_after(patience):
                await page.evaluate("1")
                return True
        except Error:  # it is being replaced, or closed
            if page.is_closed():
                return True
            await anyio.sleep(patience / 2)
    return False
