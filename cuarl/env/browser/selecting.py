"""Choosing an option of a list by its text."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuarl.env.browser.tabs import Tabs
from cuarl.types import SelectOption

MOST_NAMES = 20
"""Options that are told by name."""
CHOOSE = """(hit, wanted) => {
  const list = hit.closest('select') ?? hit.closest('label')?.control;
  if (!(list instanceof HTMLSelectElement)) return 'none';
  if (list.matches(':disabled')) return 'disabled';
  const plain = (text) => text.trim().replace(/\\s+/g, ' ');
  const can = [...list.options].filter((o) => !o.disabled && !o.parentElement.disabled);
  const option = can.find((o) => plain(o.label) === plain(wanted)) ?? can.find((o) => o.value === wanted);
  if (!option) return can.map((o) => plain(o.label));
  if (option.selected) return '';
  if (list.multiple) option.selected = true;
  else list.selectedIndex = option.index;
  for (const kind of ['input', 'change'])
    list.dispatchEvent(new Event(kind, {bubbles: true, composed: kind === 'input'}));
  return '';
}"""


@lru_cache(maxsize=1)
def _script() -> str:
    return files("cuarl.env.browser").joinpath("selecting.js").read_text(encoding="utf-8")


async def select(action: SelectOption, tabs: Tabs, scale: float) -> str:
    """Choose the option of the list at the action's point. Why that can't be done; empty if it is. Raises EnvError."""
    page = await tabs.shown()
    async with tabs.bounded("choosing an option"):
        hit = await _element(page, (action.x + 0.5) / scale, (action.y + 0.5) / scale)
        found = await hit.evaluate(CHOOSE, action.option) if hit is not None else "none"
    match found:
        case "":
            return ""
        case "none":
            return f"there is no list at ({action.x}, {action.y})"
        case "disabled":
            return "the list is disabled"
    names = ", ".join(found[:MOST_NAMES]) + (" …" if len(found) > MOST_NAMES else "")
    return f'the list has no option "{action.option}": {names or "it has none"}'


async def _element(frame: Any, x: float, y: float) -> Any:
    """The innermost element at a point, in frames too; None for none."""
    while True:
        hit = (await frame.evaluate_handle(_script(), [x, y])).as_element()
        inner = await hit.content_frame() if hit is not None else None
        if hit is None or inner is None:
            return hit
        left, top = await hit.evaluate(
            "(e) => { const r = e.getBoundingClientRect(); return [r.left + e.clientLeft, r.top + e.clientTop]; }"
        )
        frame, x, y = inner, x - left, y - top
