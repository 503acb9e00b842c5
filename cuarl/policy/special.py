"""The token ids that mean something to the machinery rather than to the reader."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """Special token ids of a policy.

    ``suppressed`` are never sampled: image and video placeholders and their brackets, for which there would be no
    picture in the next forward pass, and padding rows of the vocabulary, which have no text. They are masked alike in
    sampling and in scoring, so that both speak of one distribution.
    """

    image: int
    vision_start: int
    vision_end: int
    eos: frozenset[int]
    end_of_turn: int
    pad: int
    suppressed: tuple[int, ...]

    @property
    def unsayable(self) -> frozenset[int]:
        """``suppressed``, to be looked up: what a server may sample all the same ends the answer there."""
        return frozenset(self.suppressed)
