"""An entropy bonus that is there only while the policy's entropy is below a floor (Skywork-OR1, arXiv:2505.22312).

With e the mean entropy of the tokens that the step before trained, in nats::

    coef ← coef + STEP  if e < floor,  else max(0, coef − STEP)        after each step
    bonus = coef        if e < floor,  else 0                          in the next

A fixed bonus is either too small to hold the entropy or too large once it is held; this one looks for its size. Both
numbers are part of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

STEP = 0.005
"""What the coefficient changes by from step to step."""


class EntropyFloor:
    """The bonus of a run."""

    def __init__(self, floor: float) -> None:
        self._floor = floor
        self._coef = 0.0
        self._below = False

    @property
    def coef(self) -> float:
        """Weight of the bonus in the present step."""
        return self._coef if self._below else 0.0

    def observe(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Learn the entropy from the metrics of a step, and say what its bonus was; without one nothing changes."""
        told = {"policy/entropy_coef": self.coef}
        if (entropy := metrics.get("policy/entropy")) is not None:
            self._below = entropy < self._floor
            self._coef = self._coef + STEP if self._below else max(0.0, self._coef - STEP)
        return told

    def state(self) -> dict[str, float]:
        """All of it, of types that a checkpoint may hold."""
        return {"coef": self._coef, "below": float(self._below)}

    def restore(self, state: Mapping[str, float]) -> None:
        """Take ``state()`` back."""
        self._coef, self._below = state["coef"], bool(state["below"])
