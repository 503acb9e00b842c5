"""What every page is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cuarl.store.costs import NO_PRICES, Prices
from cuarl.store.judged import Rate, judged
from cuarl.store.pages import Pages
from cuarl.store.records import EvaluationRecord
from cuarl.store.store import Store
from cuarl.trajectory import Group


class Difference(Protocol):
    """B minus A over the instances that both have met."""

    @property
    def difference(self) -> float:
        """The mean."""
        ...

    @property
    def low(self) -> float:
        """Lower end of its interval."""
        ...

    @property
    def high(self) -> float:
        """Upper end."""
        ...

    @property
    def p_value(self) -> float:
        """Of the paired test."""
        ...

    @property
    def pairs(self) -> int:
        """Instances."""
        ...


Instances = Mapping[tuple[str, int], Sequence[float]]
"""Successes as ones and zeros, by task and seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """How shares and differences are reckoned; handed in, since evaluations know it and the monitor does not."""

    rate: Rate
    compare: Callable[[Instances, Instances], Difference]
    """Raises ValueError where no instance is in common."""


Pieces = Callable[[str, Sequence[int]], Sequence[str] | None]
"""Texts of token ids of a model; None where its tokenizer is not on this machine."""

Credit = Callable[
    [Mapping[str, Any], Sequence[float | None], Callable[[], Group]], Sequence[Sequence[float] | float | None]
]
"""Advantages of a group's attempts by a run's configuration: one for all turns, or one a turn; None if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The store, how numbers are reckoned, and what this monitor may do."""

    store: Store
    pages: Pages
    statistics: Statistics
    pieces: Pieces
    credit: Credit
    prices: Prices = NO_PRICES
    prefix: str = ""
    """Path that all addresses begin with."""
    read_only: bool = False
    """Whether nobody may overrule a verdict here."""
    still: bool = False
    """Whether the pages are to be files, with no server behind them."""

    def judged(self, records: Sequence[EvaluationRecord]) -> list[EvaluationRecord]:
        """Evaluations by the verdicts that hold."""
        return judged(self.pages, records, self.statistics.rate)

    def evaluations(self, run_id: str) -> list[EvaluationRecord]:
        """Those of a run, by the verdicts that hold."""
        return self.judged(self.pages.evaluations(run=run_id))
