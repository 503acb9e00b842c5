"""Turns as a page shows them, of an episode that is over or of one that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from cuarl.monitor.draw import caption
from cuarl.monitor.web.marks import Marks, marks
from cuarl.store.records import LiveRecord
from cuarl.trajectory import Turn
from cuarl.types import ImageRef


@dataclass(frozen=True)
class Shot:
    """A turn, or the last screen: what the device showed, and what was done there."""

    index: int
    screen: ImageRef
    turn: Turn | None = None

    @property
    def words(self) -> str:
        """What was done, in a few words."""
        return caption(self.turn)[0] if self.turn else "the end"

    @property
    def trouble(self) -> str:
        """What was wrong with it."""
        return caption(self.turn)[1] if self.turn else ""

    @cached_property
    def marks(self) -> Marks | None:
        """Where on the screen."""
        return marks(self.turn.action if self.turn else None, self.screen.width, self.screen.height)


def shots(turns: Sequence[Turn], last: ImageRef | None) -> list[Shot]:
    """The turns in order, then the last screen where it is known."""
    found = [Shot(i, turn.screenshot, turn) for i, turn in enumerate(turns)]
    return found + ([Shot(len(turns), last)] if last else [])


@dataclass(frozen=True, slots=True)
class Token:
    """One sampled token."""

    text: str
    logprob: float | None
    advantage: float | None = None

    @property
    def credit(self) -> str:
        """Whether it was made likelier (``up``) or less likely (``down``), in three strengths; empty for neither."""
        if not self.advantage:
            return ""
        strength = 1 + (abs(self.advantage) >= 0.5) + (abs(self.advantage) >= 1)
        return f"{'up' if self.advantage > 0 else 'down'}{strength}"

    @property
    def shade(self) -> str:
        """How likely it was, from 0 (certain) to 9."""
        return "" if self.logprob is None else str(min(9, int(-2 * self.logprob)))


def tokens(
    texts: Sequence[str] | None, ids: Sequence[int], logprobs: Sequence[float] | None, advantage: float | None = None
) -> list[Token]:
    """The sampled tokens, by their ids where nobody knows their texts."""
    words = texts if texts is not None else [f"‹{i}›" for i in ids]
    probabilities: Sequence[float | None] = logprobs if logprobs is not None else [None] * len(words)
    return [Token(text, logprob, advantage) for text, logprob in zip(words, probabilities, strict=True)]


@dataclass(frozen=True, slots=True)
class Running:
    """An episode that is under way."""

    id: str
    run_id: str
    phase: str
    at: float
    started_at: float
    task_id: str
    goal: str
    group_id: str
    attempt: int
    step: int
    purpose: str
    backend: str
    device: str
    max_turns: int
    turns: tuple[Turn, ...]
    screen: ImageRef | None


def running(record: LiveRecord) -> Running:
    """An episode as its row of the table ``live`` tells it."""
    data: dict[str, Any] = dict(record.data)
    return Running(
        record.episode_id,
        record.run_id,
        record.phase,
        record.at,
        float(data.get("started_at", 0.0)),
        str(data.get("task_id", "")),
        str(data.get("goal", "")),
        str(data.get("group_id", "")),
        int(data.get("attempt", 0)),
        int(data.get("step", 0)),
        str(data.get("purpose", "")),
        str(data.get("backend", "")),
        str(data.get("device", "")),
        int(data.get("max_turns", 0)),
        tuple(_turns(data.get("turns", ()))),
        ImageRef.model_validate(data["screen"]) if data.get("screen") else None,
    )


def _turns(data: Sequence[Any]) -> list[Turn]:
    """Those that can be read: another version of the program may have written them."""
    found = []
    for one in data:
        try:
            found.append(Turn.model_validate(one))
        except ValidationError:
            break
    return found
