"""What a page says of itself for the checks of its task: the text that it shows, and the values of the task's scripts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuarl.env.browser.passing import is_passing
from cuarl.tasks.paths import Unreadable

TEXT_LIMIT = 20_000
"""Most characters of a page's text, those of its frames included."""
VALUE = """async (script) => JSON.parse(JSON.stringify((await (0, eval)(script)) ?? null) ?? 'null')"""


async def read_text(page: Any) -> str:
    """What the page shows as text, its components and visible frames included. Raises Playwright's Error."""
    from playwright.async_api import Error

    text = str(await page.main_frame.evaluate(_text_script(), TEXT_LIMIT))
    for frame in page.frames[1:]:
        try:
            if await _visible(frame):
                text += "\n" + str(await frame.evaluate(_text_script(), TEXT_LIMIT))
        except Error as error:
            if not frame.is_detached() and not is_passing(error, page):
                raise
    return text[:TEXT_LIMIT]


async def read_values(page: Any, scripts: Mapping[str, str]) -> dict[str, Any]:
    """The values of JavaScript expressions by their names, as plain data; ``Unreadable`` for one with an error.

    Raises Playwright's Error if the page is replaced meanwhile.
    """
    from playwright.async_api import Error

    values: dict[str, Any] = {}
    for name, script in scripts.items():
        try:
            # each by a call of its own: pages that forbid eval allow it there
            values[name] = await page.evaluate(VALUE, script)
        except Error as error:
            if page.is_closed() or is_passing(error, page):
                raise
            said = str(error).splitlines()[0].removeprefix("Page.evaluate: ")
            values[name] = Unreadable(f"{script} gives {said}")
    return values


async def _visible(frame: Any) -> bool:
    """Whether a frame, and each one around it, is on the page."""
    while frame.parent_frame is not None:
        if not await (await frame.frame_element()).is_visible():
            return False
        frame = frame.parent_frame
    return True


@lru_cache(maxsize=1)
def _text_script() -> str:
    return files("cuarl.env.browser").joinpath("text.js").read_text(encoding="utf-8")
