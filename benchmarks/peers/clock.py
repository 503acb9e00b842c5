"""Seconds and peak memory of the two halves of each step."""

from __future__ import annotations

import resource
import statistics
import time
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Step:
    """One training step. GPU memory is what tensors took at most; 0 without a GPU."""

    rollout_s: float
    update_s: float
    rollout_gib: float
    update_gib: float

    @property
    def seconds(self) -> float:
        """Of both halves."""
        return self.rollout_s + self.update_s


class Clock:
    """``begin``, ``rolled``, ``updated``, in this order, for each step."""

    def __init__(self, device: str) -> None:
        self._cuda = device == "cuda"
        self.steps: list[Step] = []
        self._start, self._half, self._rollout_gib = 0.0, 0.0, 0.0

    def begin(self) -> None:
        """A step begins."""
        self._start, _ = self._now()

    def rolled(self) -> None:
        """Its episodes are there."""
        self._half, self._rollout_gib = self._now()

    def updated(self) -> None:
        """Its update is made."""
        end, gib = self._now()
        self.steps.append(Step(self._half - self._start, end - self._half, self._rollout_gib, gib))

    def _now(self) -> tuple[float, float]:
        """Time when the device has done what it was asked, and the peak of memory since the last time."""
        if not self._cuda:
            return time.perf_counter(), 0.0
        torch.cuda.synchronize()
        gib = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
        return time.perf_counter(), gib

    def summary(self, warmup: int) -> dict[str, float]:
        """Medians over the steps after ``warmup``, the first step by itself, and peaks over all."""
        warm = self.steps[warmup:]
        found = {
            "step_s": statistics.median(s.seconds for s in warm),
            "step_min_s": min(s.seconds for s in warm),
            "step_max_s": max(s.seconds for s in warm),
            "rollout_s": statistics.median(s.rollout_s for s in warm),
            "update_s": statistics.median(s.update_s for s in warm),
            "first_step_s": self.steps[0].seconds,
            "first_rollout_s": self.steps[0].rollout_s,
            "rollout_gib": max(s.rollout_gib for s in self.steps),
            "update_gib": max(s.update_gib for s in self.steps),
            "rss_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
        return {name: round(value, 3) for name, value in found.items()}
