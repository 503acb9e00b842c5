"""What a policy has computed, counted where it is done, for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields


@dataclass(slots=True)
class Work:
    """Counts since they were last taken. Tokens of a prompt count once, however many answers it gets in one batch."""

    prompts: int = 0
    """Distinct prompts of all batches."""
    prompt_tokens: int = 0
    """Their tokens, image tokens included."""
    reused_tokens: int = 0
    """Those of them whose keys and values were known from earlier batches."""
    decoded_tokens: int = 0
    """Tokens of answers behind the first, which comes with the prompt."""
    decode_rows: int = 0
    """Rows of all decoding passes, idle ones included."""
    steps: int = 0
    """Decoding passes."""
    pictures: int = 0
    """Pictures that went through the vision tower."""
    seconds: float = 0.0
    """Wall time in which answers were computed."""


def total(works: Sequence[Work | None]) -> Work | None:
    """What some processes did at the same time: the sums, and the longest time; None where one did not count."""
    counted = [work for work in works if work is not None]
    if len(counted) < len(works):
        return None
    found = Work(**{f.name: sum(getattr(work, f.name) for work in counted) for f in fields(Work)})
    found.seconds = max(work.seconds for work in counted)
    return found
