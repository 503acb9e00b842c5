"""Plans for boxes: Android tells the views on its screen, Linux what GBox's detection finds there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from cuarl.env.gbox.actions import refusal
from cuarl.env.gbox.client import BoxType, GBox
from cuarl.env.plans.devices import Abilities
from cuarl.env.plans.elements import ON_DEVICES, Element
from cuarl.env.plans.hierarchy import read_hierarchy
from cuarl.errors import EnvError
from cuarl.types import Screenshot

ABILITIES: Mapping[BoxType, Abilities] = {
    "android": Abilities(
        "a box of type android",
        partial(refusal, size=(1, 1), box_type="android"),
        ways=ON_DEVICES.ways,
        terminal=False,
    ),
    "linux": Abilities(
        "a box of type linux",
        partial(refusal, size=(1, 1), box_type="linux"),
        ways=("text", "class", "at"),
        terminal=True,
    ),
}


async def read_screen(
    boxes: GBox, box: str, box_type: BoxType, shown: Screenshot, scale: tuple[float, float]
) -> tuple[Element, ...]:
    """The things on the screen, their boxes in pixels of ``shown``.

    ``scale`` is units of the display for one of these, across and down. Raises EnvError.
    """
    size = shown.width, shown.height
    try:
        if box_type == "android":
            return read_hierarchy(await boxes.layout(box), size, scale)
        return tuple(_detected(await boxes.elements(box), size, scale))
    except (KeyError, TypeError, ValueError) as error:
        raise EnvError(f"box {box} does not tell what is on its screen: {error}") from error


def _detected(
    found: Iterable[Mapping[str, Any]], size: tuple[int, int], scale: tuple[float, float]
) -> Iterable[Element]:
    """Raises KeyError, TypeError, ValueError."""
    for one in found:
        left, top = float(one["x"]) / scale[0], float(one["y"]) / scale[1]
        right, bottom = left + float(one["width"]) / scale[0], top + float(one["height"]) / scale[1]
        cut = max(0.0, left), max(0.0, top), min(float(size[0]), right), min(float(size[1]), bottom)
        if cut[0] < cut[2] and cut[1] < cut[3]:
            yield Element(cut, text=str(one.get("label") or ""), kind=str(one.get("type") or ""), usable=True)
