"""Turns that extend one another, packed into one sequence.

Where a prompt holds earlier answers, a turn's prompt is often the prompt of the turn before, its answer, and a new
screen. Attention is causal and positions count from the beginning, so one pass over the longest of these prompts
computes the states of all answers inside it: each sees what it saw when it was sampled. A turn that is not extended
stands behind its prompt as ever. Loss and gradient are those of separate sequences up to rounding. Pure Python, no
tensors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class SampledTurn(NamedTuple):
    """One turn: the ids of its prompt, the digests of the pictures in it, and the ids of the answer."""

    prompt: tuple[int, ...]
    pictures: tuple[str, ...]
    answer: tuple[int, ...]


def hosts(turns: Sequence[SampledTurn]) -> list[int | None]:
    """For each turn the index of one whose prompt begins with its prompt and answer; None if there is none.

    Of several the one with the longest prompt, so a host has no host itself.
    """
    order = sorted(range(len(turns)), key=lambda i: turns[i].prompt)
    prompts = [turns[i].prompt for i in order]
    return [_host(turn, turns, order, prompts) for turn in turns]


def _host(
    turn: SampledTurn, turns: Sequence[SampledTurn], order: Sequence[int], prompts: Sequence[tuple[int, ...]]
) -> int | None:
    if not turn.answer:  # to be sampled yet: its prompt is needed with room behind it
        return None
    whole, found = turn.prompt + turn.answer, None
    # what begins with ``whole`` stands together, right behind where ``whole`` itself would
    for at in range(bisect_left(prompts, whole), len(prompts)):
        if prompts[at][: len(whole)] != whole:
            break
        other = turns[order[at]]
        # ids say where pictures are, not which; the longest prompt, so that hosts need no hosts
        if other.pictures[: len(turn.pictures)] == turn.pictures and (
            found is None or len(other.prompt) > len(turns[found].prompt)
        ):
            found = order[at]
    return found
