"""What a run has cost: time of devices, time of the machine, tokens; in money where prices are set."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cuarl.store.pages import CostLine, Pages
from cuarl.store.records import RunRecord
from cuarl.types import Record


class Prices(Record):
    """What things cost, in any currency; None is left out of the sum."""

    device_hour: float | None = None
    machine_hour: float | None = None
    million_tokens_in: float | None = None
    million_tokens_out: float | None = None


NO_PRICES = Prices()


class Costs(Record):
    """The ledger of a run."""

    lines: Sequence[CostLine]
    machine: str
    """What the run computed on."""
    machine_s: float
    """Seconds of it: of all steps; of a run without steps, from its start to its end."""
    money: float | None = None
    """By the prices that are set; None where none is."""

    @property
    def successes(self) -> int:
        """Of all its episodes."""
        return sum(line.successes for line in self.lines)

    @property
    def device_s(self) -> float:
        """Of all its episodes."""
        return sum(line.device_s for line in self.lines)

    @property
    def tokens_in(self) -> int:
        """Of all its episodes."""
        return sum(line.tokens_in for line in self.lines)

    @property
    def tokens_out(self) -> int:
        """Of all its episodes."""
        return sum(line.tokens_out for line in self.lines)


def costs_of(pages: Pages, run: RunRecord, prices: Prices, *, most: int | None = None) -> Costs | None:
    """The ledger of a run; None for one with more than ``most`` episodes. A million of them take seconds."""
    lines = pages.cost_lines(run.id, most)
    if lines is None:
        return None
    steps = pages.series(run.id, ["time/step_s"]).get("time/step_s", [])
    since = max(0.0, (run.finished_at or run.heartbeat_at or time.time()) - run.started_at)
    found = Costs(lines=lines, machine=_machine(run), machine_s=sum(s for _, s in steps) if steps else since)
    return found.model_copy(update={"money": _money(found, prices)})


def _machine(run: RunRecord) -> str:
    facts = run.info.get("machine")
    known: dict[str, Any] = facts if isinstance(facts, dict) else {}
    gpus = [str(gpu).partition(",")[0] for gpu in known.get("gpus") or ()]
    if gpus and not str(run.config.get("device", "")).startswith("cpu"):
        return gpus[0]
    return f"{known['cpus']} processor cores" if known.get("cpus") else "its machine"


def _money(costs: Costs, prices: Prices) -> float | None:
    parts = [
        (prices.device_hour, costs.device_s / 3600),
        (prices.machine_hour, costs.machine_s / 3600),
        (prices.million_tokens_in, costs.tokens_in / 1e6),
        (prices.million_tokens_out, costs.tokens_out / 1e6),
    ]
    told = [price * amount for price, amount in parts if price is not None]
    return sum(told) if told else None
