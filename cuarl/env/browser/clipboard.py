"""The clipboard of an episode: all contexts of a browser share the system's, and episodes must not.

Copying, cutting and pasting is done by scripts in the frame that has the focus, as a browser would: the page's own
handlers are asked first. A page's copy buttons use the same clipboard.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

TOLD = "cuarlCopied"
"""The function by which pages hand over what their own buttons copy."""
MOST_CHARACTERS = 1_000_000
INNER = """() => {
  let el = document.activeElement;
  for (let root = el?.shadowRoot; root?.activeElement; root = el.shadowRoot) el = root.activeElement;
  return el;
}"""


async def taken(page: Any, kind: Literal["copy", "cut"]) -> str:
    """The text that is selected where the focus is, or what the page makes of it; cut text is gone from the page."""
    frame = await _focused_frame(page)
    return str(await frame.evaluate(f"(kind) => ({_source('clipboard.js')})().take(kind)", kind))[:MOST_CHARACTERS]


async def paste(page: Any, text: str) -> None:
    """Put ``text`` where the focus is, unless the page takes it itself or refuses it."""
    frame = await _focused_frame(page)
    if text and not await frame.evaluate(f"(text) => ({_source('clipboard.js')})().give(text)", text):
        await page.keyboard.insert_text(text)


def buttons() -> str:
    """JavaScript by which a page's own copy buttons use the episode's clipboard; ``TOLD`` must be bound."""
    return f"({_source('clipboard_buttons.js')})(({_source('clipboard.js')})(), (text) => globalThis.{TOLD}(text));"


async def _focused_frame(page: Any) -> Any:
    frame = page.main_frame
    while True:
        element = (await frame.evaluate_handle(INNER)).as_element()
        inner = await element.content_frame() if element else None
        if inner is None:
            return frame
        frame = inner


@lru_cache(maxsize=2)
def _source(name: str) -> str:
    text = files("cuarl.env.browser").joinpath(name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("//"))
