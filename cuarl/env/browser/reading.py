"""What a page says of itself for the checks of its task.

The text that it shows, and the values of the task's scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuarl.env.browser.passing import is_passing
from cuarl.tasks.paths import Unreadable

TEXT_LIMIT = 20_000
"""Most characters of a page's text, those of its frames included."""
PAGE = "(limit) => [location.href, document.title ?? '', (%s)(limit)]"
VISIBLE = """(frame) => {
  const {width, height} = frame.getBoundingClientRect();
  return width > 0 && height > 0 && frame.checkVisibility({visibilityProperty: true});
}"""
"""As Playwright's own, which would first load a library of its own into each frame."""
VALUE = """async (script) => JSON.parse(JSON.stringify((await (0, eval)(script)) ?? null) ?? 'null')"""


async def read_page(page: Any) -> dict[str, Any]:
    """Its ``url`` and ``title``, and the ``text`` that it shows, components and visible frames included.

    Raises Playwright's Error, also if the page is replaced meanwhile.
    """
    from playwright.async_api import Error

    # at once, so that all is said of one document
    url, title, text = await page.evaluate(PAGE % _text_script(), TEXT_LIMIT)
    for frame in page.frames[1:]:
        try:
            if await _visible(frame):
                text += "\n" + str(await frame.evaluate(_text_script(), TEXT_LIMIT))
        except Error as error:
            if not frame.is_detached() and not is_passing(error, page):
                raise
    return {"url": url, "title": title, "text": text[:TEXT_LIMIT]}


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
        if not await (await frame.frame_element()).evaluate(VISIBLE):
            return False
        frame = frame.parent_frame
    return True


@lru_cache(maxsize=1)
def _text_script() -> str:
    return files("cuarl.env.browser").joinpath("text.js").read_text(encoding="utf-8")
