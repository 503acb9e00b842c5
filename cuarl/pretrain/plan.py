"""How long and how fast a base is pre-trained, and how far a run is."""

from __future__ import annotations

import time
from dataclasses import dataclass

STEPS = 3000
"""Batches of a run whose length is not given otherwise."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how fast. The run lasts ``minutes`` if these are given, else ``steps`` batches."""

    steps: int = STEPS
    minutes: float | None = None
    batch: int = 128
    """Screens of a batch; of a desktop, which is larger, half as many."""
    learning_rate: float = 1e-3
    warmup: int = 100
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    letters_until: float = 0.15
    """Share of the run in which letters alone are learnt, at the most."""
    letters_enough: float = 0.95
    """Share of right letters at which that part ends earlier."""
    letters_weight: float = 0.3
    """Of the letters' loss beside that of the rounds."""
    repeats: int = 6
    """Updates on each batch while letters alone are learnt, each with the screens moved by other pixels."""
    soft_from: float = 0.7
    """Share of the run after which rounds in no known wording come in."""
    soft: float = 0.6
    """Their share from 0.1 later on."""
    desktop_every: int = 5
    """Of so many batches one shows desktops."""
    replays: int = 0
    """Earlier batches that are learnt from again after each new one: drawing one may take longer than learning it."""
    workers: int = 8
    seed: int = 0

    def softness(self, done: float) -> float:
        """Share of soft rounds when a share ``done`` of the run is over."""
        return self.soft * min(1.0, max(0.0, (done - self.soft_from) / 0.1))

    def rate(self, step: int, done: float) -> float:
        """Learning rate: linear warm-up, then level, then down to a fiftieth over the last half of the run."""
        risen = min(1.0, (step + 1) / self.warmup)
        return self.learning_rate * risen * min(1.0, 0.02 + 0.98 * 2 * (1 - done))


class Clock:
    """How far a run is, over all its attempts: by steps, or by the time that they took."""

    def __init__(self, plan: Plan, step: int = 0, seconds: float = 0.0) -> None:
        self._plan, self.step, self._before = plan, step, seconds
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Spent so far."""
        return self._before + time.monotonic() - self._began

    @property
    def done(self) -> float:
        """Share of the run, 0 to 1."""
        if self._plan.minutes is not None:
            return min(1.0, self.seconds / (60 * self._plan.minutes))
        return min(1.0, self.step / self._plan.steps)
