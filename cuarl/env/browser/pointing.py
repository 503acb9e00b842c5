"""Finding what a plan points at in the shown page: where the screenshot shows it, or why it doesn't.

Boxes are in CSS pixels of the page's visible part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any

from cuarl.env.browser.passing import first_line, is_passing
from cuarl.env.browser.tabs import Tabs
from cuarl.env.plans.seeing import NotSeen, Seen, chosen
from cuarl.env.plans.targets import Target

UNREAD = ("Unexpected token", "is not a valid selector", "Unknown engine", "parsing selector", "Malformed selector")
"""What Playwright says of a selector that it can't read."""
FRAME = """(frame, box) => {
  const {left, top} = frame.getBoundingClientRect(), {paddingLeft, paddingTop} = getComputedStyle(frame);
  const x = left + frame.clientLeft + parseFloat(paddingLeft), y = top + frame.clientTop + parseFloat(paddingTop);
  const moved = [box[0] + x, box[1] + y, box[2] + x, box[3] + y];
  const hit = frame.getRootNode().elementFromPoint((moved[0] + moved[2]) / 2, (moved[1] + moved[3]) / 2);
  return hit === frame ? moved : null;
}"""
"""A box of a frame, in the coordinates of the page around it; null where something covers the frame there."""


async def find(tabs: Tabs, target: Target) -> Seen:
    """The one visible element that ``target`` names. Raises NotSeen if there is none, or several, and EnvError."""
    seen: Sequence[Seen] = ()
    for exact in (True, False) if target.by != "css" else (True,):
        found = await tabs.reading(partial(_look, target=target, exact=exact), what=f"looking for {target}")
        if isinstance(found, str):
            raise NotSeen(f"the selector can't be read: {found}")
        seen = found or seen
        if any(not one.why for one in found):
            break
    return chosen(seen, target)


async def _look(page: Any, *, target: Target, exact: bool) -> list[Seen] | str:
    """All that match, in all frames; a text says what is wrong with the selector. Raises Playwright's Error."""
    from playwright.async_api import Error

    found = []
    for frame in page.frames:
        try:
            told = await _locator(frame, target, exact).evaluate_all(visible_script())
        except Error as error:
            if any(words in str(error) for words in UNREAD):
                return first_line(error).rpartition("Error: ")[2]
            if frame.is_detached() and not is_passing(error, page):
                continue
            raise
        found += [await _placed(frame, Seen(one["text"], one["box"], one["why"])) for one in told]
    return found


def _locator(frame: Any, target: Target, exact: bool) -> Any:
    match target.by:
        case "css":
            return frame.locator(f"css={target.value}")
        case "role":
            return frame.get_by_role(target.value, **({"name": target.name, "exact": exact} if target.name else {}))
        case "label":
            labelled = frame.get_by_label(target.value, exact=exact)
            return labelled.or_(frame.get_by_placeholder(target.value, exact=exact))
        case "text":
            return frame.get_by_text(target.value, exact=exact)


async def _placed(frame: Any, seen: Seen) -> Seen:
    """``seen`` in the coordinates of the page that all frames are in."""
    box: Any = seen.box
    for inner in _outwards(frame) if box else ():
        box = await (await inner.frame_element()).evaluate(FRAME, list(box))
        if box is None:
            return Seen(seen.text, None, "is in a frame that is covered")
    return Seen(seen.text, tuple(box) if box else None, seen.why)


def _outwards(frame: Any) -> Iterator[Any]:
    while frame.parent_frame is not None:
        yield frame
        frame = frame.parent_frame


@lru_cache(maxsize=1)
def visible_script() -> str:
    """JavaScript that tells where some elements are seen."""
    return files("cuarl.env.browser").joinpath("visible.js").read_text(encoding="utf-8")
