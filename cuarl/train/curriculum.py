"""Which tasks are trained on next, by how the policy fares with them. Pure Python.

``failure-filter`` (failure curriculum filtering of MobileRL, arXiv:2509.18119): tasks come in turn, in rounds of
shuffled copies; one whose last ``patience`` groups were all failures is set aside for ``cooldown`` rounds.

``pools``: each step draws tasks by weight. Tasks solved now and then teach most, for their groups are mixed; those
always solved, or never, come up now and then, so that it is noticed when that changes.

What it knows is part of a checkpoint, and depends only on the batches that were trained on.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import NonNegativeInt, PositiveInt

from cuarl.trajectory import Group
from cuarl.types import Record

Pool = Literal["unseen", "unsolved", "learning", "solved"]

WEIGHTS: Mapping[Pool, float] = {"unseen": 1.0, "unsolved": 0.25, "learning": 1.0, "solved": 0.1}
"""How likely a task of each pool is drawn, against one of another."""
_MEMORY = 2
"""Groups whose success rates decide on a task's pool."""
_SOLVED = 0.95


class CurriculumConfig(Record):
    """How tasks are chosen."""

    kind: Literal["failure-filter", "pools"] = "failure-filter"
    patience: PositiveInt = 2
    cooldown: PositiveInt = 3
    seed: NonNegativeInt = 0


class Curriculum:
    """What is known of each task, and what comes next."""

    def __init__(self, config: CurriculumConfig) -> None:
        self.config = config
        self._rates: dict[str, list[float]] = {}
        self._failures: Counter[str] = Counter()
        self._aside: dict[str, int] = {}
        """Task → the first round in which it comes again."""
        self._position = 0
        """How far the endless row of rounds is used up."""
        self._drawn = 0
        self._tasks: tuple[str, ...] = ()

    def choose(self, tasks: Sequence[str], count: int) -> list[str]:
        """The next ``count`` of ``tasks``; every call goes on where the last one ended."""
        self._tasks = tuple(tasks)
        return self._by_pool(tasks, count) if self.config.kind == "pools" else self._in_turn(tasks, count)

    def observe(self, groups: Sequence[Group]) -> None:
        """Learn how groups went; groups without a verdict say nothing."""
        for group in groups:
            outcomes = [float(t.success) for t in group.trajectories if t.success is not None]
            if not outcomes:
                continue
            task = group.task_id
            rate = math.fsum(outcomes) / len(outcomes)
            self._rates[task] = [*self._rates.get(task, []), rate][-_MEMORY:]
            self._failures[task] = 0 if rate > 0 else self._failures[task] + 1

    def pool(self, task: str) -> Pool:
        """Where a task is."""
        rates = self._rates.get(task)
        if not rates:
            return "unseen"
        mean = math.fsum(rates) / len(rates)
        return "unsolved" if mean == 0 else "solved" if mean >= _SOLVED else "learning"

    def metrics(self) -> dict[str, float]:
        """How many of the tasks last chosen from are where."""
        if self.config.kind == "pools":
            pools = Counter(self.pool(task) for task in self._tasks)
            return {f"curriculum/{pool}": float(pools[pool]) for pool in WEIGHTS}
        now = self._position // max(1, len(self._tasks))
        return {"curriculum/set_aside": float(sum(until > now for until in self._aside.values()))}

    def state(self) -> dict[str, Any]:
        """All of it, of types that a checkpoint may hold."""
        return {
            "rates": dict(self._rates),
            "failures": dict(self._failures),
            "aside": dict(self._aside),
            "position": self._position,
            "drawn": self._drawn,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take ``state()`` back."""
        self._rates, self._failures = dict(state["rates"]), Counter(state["failures"])
        self._aside, self._position, self._drawn = dict(state["aside"]), state["position"], state["drawn"]

    def _in_turn(self, tasks: Sequence[str], count: int) -> list[str]:
        chosen: list[str] = []
        skipped = 0
        while len(chosen) < count:
            turn, at = divmod(self._position, len(tasks))
            task = random.Random(f"{self.config.seed}/round/{turn}").sample(tasks, len(tasks))[at]
            self._position += 1
            # where all are set aside, they are trained on all the same
            if self._rests(task, turn) and skipped < len(tasks):
                skipped += 1
            else:
                chosen.append(task)
        return chosen

    def _rests(self, task: str, turn: int) -> bool:
        if self._failures[task] >= self.config.patience:
            self._aside[task] = turn + self.config.cooldown
            self._failures[task] = 0
        return turn < self._aside.get(task, 0)

    def _by_pool(self, tasks: Sequence[str], count: int) -> list[str]:
        """Without repeats as long as there are tasks (Efraimidis and Spirakis 2006, Inf. Process. Lett. 97, p. 181)."""
        chosen: list[str] = []
        while len(chosen) < count:
            rng = random.Random(f"{self.config.seed}/draw/{self._drawn}")
            self._drawn += 1
            keys = {task: -math.log(1.0 - rng.random()) / WEIGHTS[self.pool(task)] for task in tasks}
            chosen += sorted(tasks, key=lambda t: keys[t])[: count - len(chosen)]
        return chosen
