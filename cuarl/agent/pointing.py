"""Actions on things that are described in words: a second model says where on the screen they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from cuarl.agent.formats.base import ParsedAction
from cuarl.types import Action, Drag, ParseError, Screenshot, Swipe

Point = tuple[int, int]


@runtime_checkable
class Pointer(Protocol):
    """A model that finds things on a screen."""

    async def point(self, screenshot: Screenshot, target: str) -> Point | None:
        """The pixel of ``screenshot`` at which ``target`` is; None if it is not there.

        Raises RolloutError where the model can't be asked.
        """
        ...


async def pointed(parsed: ParsedAction, screenshot: Screenshot, pointer: Pointer) -> ParsedAction:
    """``parsed`` with its points found. A thing that is not on the screen is the policy's error: it described it."""
    if parsed.action is None or not parsed.described:
        return parsed
    points: list[Point] = []
    for target in parsed.described:
        found = await pointer.point(screenshot, target)
        if found is None:
            error = ParseError(code="not_found", message=f"not on the screen: {target}")
            return replace(parsed, action=None, error=error, described=())
        points.append(found)
    return replace(parsed, action=placed(parsed.action, points), described=())


def placed(action: Action, points: Sequence[Point]) -> Action:
    """``action`` at other points, one for each that it has: the ends of a swipe, the path of a drag."""
    (x, y), (x2, y2) = points[0], points[-1]
    if isinstance(action, Swipe):
        return action.model_copy(update={"x": x, "y": y, "x2": x2, "y2": y2})
    if isinstance(action, Drag):
        return action.model_copy(update={"path": tuple(points)})
    return action.model_copy(update={"x": x, "y": y})
