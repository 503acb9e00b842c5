"""What the episodes of training are sampled from, and how it is kept in step with what is trained."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cuarl.train.loop import Settled
from cuarl.trajectory import Group
from cuarl.workflow.players import Player


async def _as_it_is(version: int) -> None:
    pass


async def _nothing() -> None:
    pass


def _all(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    return groups


@dataclass(frozen=True, slots=True)
class Source:
    """What the episodes of training are sampled from."""

    player: Player
    refresh: Callable[[int], Awaitable[None]] = _as_it_is
    """Awaited with the policy's version before a step's episodes: they are sampled from these weights."""
    rest: Callable[[], Awaitable[None]] = _nothing
    """Awaited when a step's episodes are there, or when they can't be had."""
    accept: Callable[[tuple[Group, ...]], tuple[Group, ...]] = _all
    """The groups as they may be trained on."""
    told: Settled | None = None
    """Awaited behind each update: what was done to sample, as metrics."""
