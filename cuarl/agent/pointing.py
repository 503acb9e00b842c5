"""Actions on things that are described in words: a second model says where on the screen they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from cuarl.agent.formats.base import ParsedAction
from cuarl.types import ParseError, Point, Screenshot, placed


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
