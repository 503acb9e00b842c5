"""Checkpoints that the store and the manifest know of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.store import PolicyRecord, Store
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.learner import Learner

if TYPE_CHECKING:
    from cuarl.run import Run


class RecordedCheckpoints:
    """Checkpoints that the store and the manifest know of, and that count only once the store has all up to them."""

    def __init__(self, checkpoints: Checkpoints, about: About, learner: Learner, run: Run, store: Store | None) -> None:
        """The process without a store only calls along."""
        self._checkpoints, self._about, self._learner = checkpoints, about, learner
        self._run, self._store = run, store

    def save(self, step: int) -> Path:
        """Write the checkpoint of ``step``."""
        return self._checkpoints.save(step)

    def commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None = None) -> None:
        """Make it the one to resume from, after all that was submitted to the store is there."""
        if self._store is not None:
            self._store.drain()
            self._store.save_policy(
                PolicyRecord(
                    name=self._learner.policy.name,
                    version=step,
                    run_id=self._run.run_id,
                    step=step,
                    base_model=self._about.base_model,
                    path=str(self._checkpoints.folder(step)),
                )
            )
            self._run.count({"steps": step, "episodes": self._learner.episodes})
        self._checkpoints.commit(step, metrics, pending)
