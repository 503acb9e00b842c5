"""What Android's accessibility tells of a screen: the XML of ``uiautomator dump``, as elements.

Its nodes are those of the active window that can be seen, cut to the display (AOSP, ``AccessibilityNodeInfoDumper``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from cuarl.env.plans.elements import Element
from cuarl.env.plans.seeing import Box

_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
_FIELDS = ("EditText", "AutoCompleteTextView")
"""How the names of classes that text is typed into end."""
_USABLE = ("clickable", "long-clickable")
"""What takes touches itself; the switch in a row of settings is checkable, and leaves them to its row."""


def read_hierarchy(text: str, size: tuple[int, int], scale: tuple[float, float] = (1.0, 1.0)) -> tuple[Element, ...]:
    """The nodes in ``text``, in its order, without those that have no area on the screenshot.

    ``size`` is the screenshot's, in pixels; ``scale`` is units of the display for one of its pixels, across and down.
    Raises ValueError for anything else than such an XML.
    """
    start, end = text.find("<hierarchy"), text.rfind("</hierarchy>")
    if start < 0 or end < start:
        raise ValueError(f"no hierarchy of views: {text.strip()[-200:] or 'nothing'}")
    # without its head there is no document type, and so nothing that could be expanded
    try:
        root = ElementTree.fromstring(text[start:end] + "</hierarchy>")
    except ElementTree.ParseError as error:
        raise ValueError(f"a hierarchy of views that is no XML: {error}") from error
    return tuple(_elements(root, size, scale))


def _elements(root: ElementTree.Element, size: tuple[int, int], scale: tuple[float, float]) -> Iterator[Element]:
    for node in root.iter("node"):
        box = _box(node.get("bounds", ""), size, scale)
        if box is not None:
            yield _element(node.attrib, box)


def _element(told: Mapping[str, str], box: Box) -> Element:
    kind = told.get("class", "")
    return Element(
        box,
        text=told.get("text", ""),
        description=told.get("content-desc", ""),
        id=told.get("resource-id", ""),
        kind=kind,
        hint=told.get("hint", ""),
        editable=kind.endswith(_FIELDS),
        usable=any(told.get(name) == "true" for name in _USABLE) or kind.endswith(_FIELDS),
    )


def _box(bounds: str, size: tuple[int, int], scale: tuple[float, float]) -> Box | None:
    """Pixels of the screenshot; None where nothing of it is on it."""
    found = _BOUNDS.fullmatch(bounds)
    if found is None:
        return None
    left, top, right, bottom = map(int, found.groups())
    box = (
        max(0.0, left / scale[0]),
        max(0.0, top / scale[1]),
        min(float(size[0]), right / scale[0]),
        min(float(size[1]), bottom / scale[1]),
    )
    return box if box[0] < box[2] and box[1] < box[3] else None
