"""Checkpoints of training by the Tinker service: it keeps the weights, and a folder of the run says where."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cuarl.errors import CheckpointError
from cuarl.policy.remote.tinker import mapped
from cuarl.run.atomic import write_text
from cuarl.run.checkpoints import (
    POINTER,
    keep_pending,
    mark,
    marked_step,
    newest,
    read_pending,
    saved_steps,
    step_name,
)
from cuarl.train.tinker import TinkerLearner

logger = logging.getLogger(__name__)

STREAM = "stream.json"
"""In the newest checkpoint's folder: groups that were in flight."""


class TinkerCheckpoints:
    """What ``train.loop`` needs of checkpoints: the service keeps the weights, and a folder of the run says where.

    ``on_commit`` is called with the step and its folder before it becomes the one to resume from. ``start`` is the step
    that was restored.
    """

    def __init__(
        self,
        root: Path,
        learner: TinkerLearner,
        *,
        run: str,
        on_commit: Callable[[int, Path], None] | None = None,
        start: int = 0,
    ) -> None:
        self.root, self._learner, self._run, self._on_commit = root, learner, run, on_commit
        self._start = start

    def folder(self, step: int) -> Path:
        """Where the pointer of ``step`` lies."""
        return self.root / step_name(step)

    def save(self, step: int) -> Path:
        """Have the service save weights, optimiser and weights for sampling. Raises CheckpointError."""
        name, client = f"{self._run}-{step_name(step)}", self._learner.client
        with mapped(CheckpointError, f"saving step {step}"):
            # a step that was saved but not committed is done, and saved, again
            state = client.save_state(name, overwrite=True)
            weights = client.save_weights_for_sampler(name)
            paths = {"state": state.result().path, "sampler": weights.result().path, "step": step}
        if marked_step(self.root) is None:
            mark(self.root, self._start)  # so that what is saved now is known to be unfinished
        folder = self.folder(step)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / POINTER, json.dumps(paths, indent=2) + "\n")
        if self._learner.stream is not None:
            write_text(folder / STREAM, self._learner.stream.state())
        return folder

    def commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None = None) -> None:
        """Make ``step`` the one to resume from; ``pending`` as of ``Checkpoints``."""
        keep_pending(self.folder(step), pending)
        if self._on_commit is not None:
            self._on_commit(step, self.folder(step))
        mark(self.root, step)
        for other in set(saved_steps(self.root)) - {step}:
            (self.folder(other) / STREAM).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SavedState:
    """A checkpoint to resume from."""

    step: int
    path: str
    """Where the service has it."""
    pending: Mapping[str, float] | None
    """Metrics of the step, if they are still to be reported."""
    stream: str | None = None
    """What was in flight, where episodes are collected asynchronously."""


def saved_state(root: Path) -> SavedState | None:
    """The state to resume from; None if there is none. Raises CheckpointError for a broken pointer."""
    found = newest(root)
    if found is None:
        return None
    if found.note:
        logger.warning("%s", found.note)
    where = root / step_name(found.step) / POINTER
    try:
        path = str(json.loads(where.read_text(encoding="utf-8"))["state"])
        flight = where.with_name(STREAM)
        stream = flight.read_text(encoding="utf-8") if flight.is_file() else None
        return SavedState(found.step, path, read_pending(where.parent), stream)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"the pointer to the service's checkpoint can't be read: {error}", where=str(where)
        ) from error
