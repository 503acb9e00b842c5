"""What a model is told beside a screenshot: what no picture shows of what came of its last action."""

from __future__ import annotations

from collections.abc import Sequence

from cuarl.trajectory import Turn
from cuarl.types import NOTE, Observation

MOST_CHARACTERS = 1000
_HARMLESS = str.maketrans("<>[]", "‹›()")
"""A page words its dialogs as it likes. None of them must read as a special token of a model, whose marks all have
these."""


def note(observation: Observation, turns: Sequence[Turn]) -> str:
    """The note on a screen behind ``turns``, in sentences; empty if there is nothing to tell."""
    rejected = turns[-1].rejected if turns else None
    parts = [f"The last action was not carried out: {rejected}." if rejected else "", observation.text.get(NOTE, "")]
    text = "".join(char if char.isprintable() else " " for char in " ".join(filter(None, parts)))
    return text.translate(_HARMLESS)[:MOST_CHARACTERS]
