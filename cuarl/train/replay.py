"""Successes kept for groups in which every attempt fails, which by themselves teach nothing.

ARPO (arXiv:2505.16282, section 3): where no attempt of a group succeeds, one of them gives way to a success that the
policy had at the same task before. It was sampled by an older policy, and its recorded logprobs say so: ratios are
taken to that policy, so clipping bounds what it can do, and with ``decoupled`` its weight is that of truncated
importance sampling. The group's mean is then no longer that of the present policy, which is the price of having a
signal at all.

What is kept is part of a checkpoint, and depends only on the batches that were trained on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from pydantic import NonNegativeInt, PositiveInt

from cuarl.train.batch import Batch
from cuarl.trajectory import Group, Trajectory
from cuarl.types import Record, Screenshot


class ReplayConfig(Record):
    """How much is kept, and how long."""

    per_task: NonNegativeInt = 0
    """Successes of each task; the oldest go first. 0: no replay."""
    max_age: PositiveInt | None = None
    """Training steps after which a success is forgotten; None: never."""
    seed: NonNegativeInt = 0


@dataclass(frozen=True, slots=True)
class _Kept:
    step: int
    trajectory: Trajectory


class Replay:
    """The successes of a run, by task."""

    def __init__(self, config: ReplayConfig) -> None:
        self.config = config
        self._kept: dict[str, list[_Kept]] = {}
        self._pictures: dict[str, Screenshot] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def filled(self, batch: Batch, step: int) -> tuple[Batch, int]:
        """The batch with a success in each group that has none, where one is kept; and in how many groups."""
        self._forget(step)
        groups = [self._filled(group, step) for group in batch.groups]
        used = sum(new is not old for new, old in zip(groups, batch.groups, strict=True))
        if not used:
            return batch, 0
        return replace(batch, groups=tuple(groups), pictures={**self._pictures, **batch.pictures}), used

    def remember(self, batch: Batch, step: int) -> None:
        """Keep the successes of a batch as it was collected, those of step ``step``."""
        for group in batch.collected if self.config.per_task else ():
            new = [_Kept(step, t) for t in group.trajectories if t.success and _replayable(t)]
            if new:
                self._kept[group.task_id] = [*self._kept.get(group.task_id, []), *new][-self.config.per_task :]
        wanted = {d for kept in self._kept.values() for k in kept for d in _digests(k.trajectory)}
        self._pictures = {d: p for d, p in {**self._pictures, **batch.pictures}.items() if d in wanted}

    def state(self) -> dict[str, Any]:
        """All of it, of types that a checkpoint may hold."""
        kept = [[k.step, task, k.trajectory.model_dump(mode="json")] for task, ks in self._kept.items() for k in ks]
        pictures = {d: torch.frombuffer(bytearray(p.png()), dtype=torch.uint8) for d, p in self._pictures.items()}
        return {"kept": json.dumps(kept), "pictures": pictures}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take ``state()`` back."""
        self._kept = {}
        for step, task, fields in json.loads(state["kept"]):
            self._kept.setdefault(task, []).append(_Kept(step, Trajectory.model_validate(fields)))
        self._pictures = {d: Screenshot.decode(bytes(p.cpu().tolist())) for d, p in state["pictures"].items()}

    def _filled(self, group: Group, step: int) -> Group:
        kept, scored = self._kept.get(group.task_id, []), [t for t in group.trajectories if t.reward is not None]
        if not kept or not scored or any(t.success for t in scored):
            return group
        chosen = random.Random(f"{self.config.seed}/{step}/{group.group_id}").choice(kept).trajectory
        return group.model_copy(update={"trajectories": _with_last(group.trajectories, scored[-1], chosen)})

    def _forget(self, step: int) -> None:
        if self.config.max_age is None:
            return
        young = {t: [k for k in ks if step - k.step <= self.config.max_age] for t, ks in self._kept.items()}
        self._kept = {task: ks for task, ks in young.items() if ks}


def _with_last(attempts: Sequence[Trajectory], old: Trajectory, new: Trajectory) -> tuple[Trajectory, ...]:
    return tuple(new if t is old else t for t in attempts)


def _replayable(trajectory: Trajectory) -> bool:
    return trajectory.reward is not None and bool(trajectory.turns) and all(t.sampled for t in trajectory.turns)


def _digests(trajectory: Trajectory) -> list[str]:
    return [ref.digest for turn in trajectory.turns if turn.sampled for ref in turn.sampled.images]
