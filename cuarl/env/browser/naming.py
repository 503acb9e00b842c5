"""What a plan calls the thing at a point of a page: the clearest name by which it is found again, and it alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuarl.env.browser.pointing import find
from cuarl.env.browser.tabs import Tabs
from cuarl.env.browser.targets import ON_PAGES
from cuarl.env.plans.seeing import Named, NotSeen
from cuarl.env.plans.targets import BadTarget, read_target

SLACK = 1.0
"""CSS pixels by which a point may lie outside of the box that is found."""


async def name_at(tabs: Tabs, x: float, y: float) -> Named | None:
    """The thing at a point in CSS pixels; None where no name leads back to it. Raises EnvError."""
    told: Mapping[str, Any] = await tabs.run(_script(), [x, y], what="naming an element")
    for name in told["names"]:
        try:
            seen = await find(tabs, read_target(name, ON_PAGES))
        except (NotSeen, BadTarget):
            continue
        left, top, right, bottom = seen.box or (0.0, 0.0, 0.0, 0.0)
        # a label stands for its field
        if "label" in name or (left - SLACK <= x <= right + SLACK and top - SLACK <= y <= bottom + SLACK):
            return Named(name, bool(told["editable"]))
    return None


@lru_cache(maxsize=1)
def _script() -> str:
    return files("cuarl.env.browser").joinpath("names.js").read_text(encoding="utf-8")
