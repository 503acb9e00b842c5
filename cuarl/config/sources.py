"""Who showed what is imitated, and how much of each a batch is to count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator

from cuarl.config.fields import split_words
from cuarl.suggest import did_you_mean

Source = Literal["human", "plan", "corrected", "policy"]
"""A person; an oracle, which follows a plan or knows the way; what a person did in a policy's place; a policy."""
SOURCES: tuple[Source, ...] = get_args(Source)


def weights(given: Sequence[str]) -> Mapping[Source, float]:
    """The weight of each source, of words such as ``human=2``; 1 where nothing is said. Raises ValueError."""
    found: dict[Source, float] = dict.fromkeys(SOURCES, 1.0)
    for word in given:
        name, _, number = word.partition("=")
        source = next((known for known in SOURCES if known == name.strip()), None)
        if source is None:
            raise ValueError(f'"{name}" shows nothing{did_you_mean(name, SOURCES)}: there are {", ".join(SOURCES)}')
        found[source] = _weight(word, number)
    return found


def _weight(word: str, number: str) -> float:
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise ValueError(f'"{word}" has no weight: write {word.partition("=")[0]}=2')
    return weight


def _known(given: tuple[str, ...]) -> tuple[str, ...]:
    weights(given)
    return given


SourceWeights = Annotated[tuple[str, ...], BeforeValidator(split_words), AfterValidator(_known)]
