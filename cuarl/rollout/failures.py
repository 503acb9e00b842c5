"""Watches the share of episodes that the infrastructure spoils, and calls a halt when it is too large."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from cuarl.errors import RolloutError
from cuarl.trajectory import Trajectory
from cuarl.types import Failure


class FailureWindow:
    """The last ``size`` episodes of a run, over any number of collections.

    ``note`` raises RolloutError once the window is full and more than ``max_share`` of it failed.
    """

    def __init__(self, size: int = 20, max_share: float = 0.5) -> None:
        self._max_share = max_share
        self._recent: deque[Failure | None] = deque(maxlen=size)

    def note(self, trajectory: Trajectory) -> None:
        """Take one finished episode into account."""
        self._recent.append(trajectory.failure)
        failures = [f for f in self._recent if f is not None]
        if len(self._recent) == self._recent.maxlen and len(failures) > self._max_share * len(self._recent):
            raise RolloutError(f"{len(failures)} of the last {len(self._recent)} episodes failed: {causes(failures)}")


def refuse_if_all_failed(trajectories: Sequence[Trajectory]) -> None:
    """Raise RolloutError if not one episode got through."""
    failures = [t.failure for t in trajectories if t.failure is not None]
    if failures and len(failures) == len(trajectories):
        raise RolloutError(f"all {len(failures)} episodes failed: {causes(failures)}")


def causes(failures: Sequence[Failure], top: int = 3) -> str:
    """The most frequent causes, with their counts."""
    counted = Counter(f"{f.boundary} {f.kind}: {f.message.splitlines()[0] if f.message else ''}" for f in failures)
    return "; ".join(f"{n}x {cause}" for cause, n in counted.most_common(top))
