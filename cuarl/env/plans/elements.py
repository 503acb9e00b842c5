"""What a device tells of the things on its screen, and how a plan's targets find them.

A text alone means a text (after ``into`` a field, by its label); a mapping says more::

Save                        the text that is shown, or the description that is read out
{text: Save}                the same
{description: Back}         the description alone (Android's content-desc)
{id: save}                  a resource id: whole, or what follows its last slash
{class: Switch, nth: 2}     a class, or the last part of its name: the second of those that are visible
{label: Name}; into: Name   a field by its label, hint or text
{at: [120, 40]}             a pixel of the screenshot, for what a device tells nothing of
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cuarl.env.plans.seeing import Box, Named, NotSeen, Seen, chosen
from cuarl.env.plans.targets import Names, Target

_BY_PLACE = ("SeekBar", "slider", "WebView", "SurfaceView")
"""How the names of classes end in which each place is something else."""
ON_DEVICES = Names(("text", "description", "id", "class", "label", "at"))


@dataclass(frozen=True, slots=True)
class Element:
    """A thing that can be seen, its box in pixels of the screenshot."""

    box: Box
    text: str = ""
    description: str = ""
    id: str = ""
    kind: str = ""
    """Its class."""
    hint: str = ""
    editable: bool = False
    usable: bool = False
    """Whether touching it does something."""

    @property
    def says(self) -> str:
        """The text, or what is read out in its place."""
        return self.text or self.description

    def covers(self, x: float, y: float) -> bool:
        """Whether a point lies in it."""
        left, top, right, bottom = self.box
        return left <= x < right and top <= y < bottom

    @property
    def area(self) -> float:
        """Pixels."""
        return (self.box[2] - self.box[0]) * (self.box[3] - self.box[1])


def find(elements: Sequence[Element], target: Target) -> Seen:
    """The one that is meant: named exactly if there is such a one, else in part. Raises NotSeen."""
    named = (_innermost(found) for found in _WAYS[target.by](elements, target.value))
    meant = next((found for found in named if found), [])
    return chosen([Seen(one.says, one.box) for one in meant], target, "the screen")


def name_at(elements: Sequence[Element], x: int, y: int) -> Named:
    """What a plan calls the thing at a pixel: the clearest name that leads back to it alone, or the pixel itself."""
    whole = _touched(elements, x, y)
    if whole is None:
        return Named({"at": [x, y]}, False)
    inside = [one for one in elements if one is whole or _within(one.box, whole.box)]
    for target in _names(whole, inside):
        try:
            seen = find(elements, target)
        except NotSeen:
            continue
        left, top, right, bottom = seen.box or whole.box
        if _touched(elements, (left + right) / 2, (top + bottom) / 2) is whole:
            return Named({target.by: target.value}, whole.editable)
    return Named({"at": [x, y]}, whole.editable)


def reach(elements: Sequence[Element], x: int, y: int) -> tuple[int, int, int, int] | None:
    """The box within which a touch is the same as one at that pixel; None where that is not known."""
    whole = _touched(elements, x, y)
    if whole is None or not whole.usable or whole.kind.endswith(_BY_PLACE):
        return None
    others = (one for one in elements if one.usable and one is not whole and not _within(whole.box, one.box))
    if any(_overlap(one.box, whole.box) for one in others):
        return None
    left, top, right, bottom = map(int, whole.box)
    return left, top, right, bottom


def _names(whole: Element, inside: Sequence[Element]) -> Iterator[Target]:
    """Names that may lead to it, the clearest first."""
    if whole.editable:
        yield from (Target("label", words) for words in (whole.hint, whole.description, whole.text) if words)
    ordered = [whole, *(one for one in inside if one is not whole)]
    yield from (Target("text", one.text) for one in ordered if one.text)
    yield from (Target("description", one.description) for one in ordered if one.description)
    yield from (Target("id", one.id.rpartition("/")[2]) for one in ordered if one.id)
    yield from (Target("id", one.id) for one in ordered if one.id)


def _touched(elements: Sequence[Element], x: float, y: float) -> Element | None:
    """What a touch at a point is for: the smallest thing there that it does something to, else the smallest."""
    there = [one for one in elements if one.covers(x, y)]
    return min(there, key=lambda one: (not one.usable, one.area), default=None)


def _innermost(found: Sequence[Element]) -> list[Element]:
    """Without those around another one: a button and the text in it are one thing."""
    return [
        one
        for place, one in enumerate(found)
        if not any(
            _within(other.box, one.box) and (other.box != one.box or later > place)
            for later, other in enumerate(found)
            if other is not one
        )
    ]


def _below(elements: Sequence[Element], labels: Sequence[Element]) -> list[Element]:
    """The fields that come next behind their labels."""
    order = list(elements)
    following = (order[order.index(label) + 1 :] for label in labels)
    fields = [next((one for one in rest if one.editable), None) for rest in following]
    return [one for one in dict.fromkeys(fields) if one is not None]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _within(inner: Box, outer: Box) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def _by_text(elements: Sequence[Element], value: str) -> Iterator[list[Element]]:
    yield [one for one in elements if value in (one.text, one.description)]
    yield [one for one in elements if any(_part(value, said) for said in (one.text, one.description))]


def _by_description(elements: Sequence[Element], value: str) -> Iterator[list[Element]]:
    yield [one for one in elements if value == one.description]
    yield [one for one in elements if _part(value, one.description)]


def _by_id(elements: Sequence[Element], value: str) -> Iterator[list[Element]]:
    yield [one for one in elements if value == one.id]
    yield [one for one in elements if one.id.endswith(f"/{value}")]


def _by_class(elements: Sequence[Element], value: str) -> Iterator[list[Element]]:
    yield [one for one in elements if value in (one.kind, one.kind.rpartition(".")[2])]


def _by_label(elements: Sequence[Element], value: str) -> Iterator[list[Element]]:
    fields = [one for one in elements if one.editable]
    yield [one for one in fields if value in (one.text, one.description, one.hint)]
    yield _below(elements, [one for one in elements if not one.editable and value == one.text])
    yield [one for one in fields if any(_part(value, said) for said in (one.text, one.description, one.hint))]


def _part(value: str, said: str) -> bool:
    return value.casefold() in said.casefold()


_WAYS: Mapping[str, Callable[[Sequence[Element], str], Iterator[list[Element]]]] = {
    "text": _by_text,
    "description": _by_description,
    "id": _by_id,
    "class": _by_class,
    "label": _by_label,
}
"""What a target may mean by each of its ways, the likelier first."""
