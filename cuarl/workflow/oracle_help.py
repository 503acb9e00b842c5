"""What an oracle does in a step for groups that fail whole: it leads them again, and demonstrates their tasks.

Both are further episodes of the step, on the devices of the failures. ``train.hints`` says what becomes of led groups;
demonstrations are imitated beside what is learnt from rewards (CGL does so where a group fails; ``batch``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cuarl.config.learning import Learning
from cuarl.rollout import seeds
from cuarl.rollout.spec import EpisodeSpec, Guidance
from cuarl.train.batch import Batch
from cuarl.train.hints import failed_whole
from cuarl.trajectory import BY, BY_ORACLE, Group, Trajectory

if TYPE_CHECKING:
    from cuarl.train.hints import Hints

_LED, _SHOWN = "hint", "demo"
"""What the ids of such groups end with."""


def specs(
    plan: Sequence[EpisodeSpec],
    batch: Batch,
    learning: Learning,
    hints: Hints | None,
    may_solve: Callable[[str], bool],
) -> list[EpisodeSpec]:
    """The episodes that are to be run besides those of ``plan``, whose groups are in ``batch``."""
    failed = {g.group_id for g in batch.groups if failed_whole(g) and may_solve(g.task_id)}
    led = [
        _again(spec, _LED, Guidance(first=hints.length(spec.task.task_id)))
        for spec in plan
        if hints is not None and spec.group_id in failed
    ]
    shown = [
        _again(spec, _SHOWN, Guidance(share=1.0))
        for spec in plan
        if learning.imitation_coef and spec.group_id in failed and spec.attempt == 0
    ]
    return [*led, *shown]


def _again(spec: EpisodeSpec, kind: str, guidance: Guidance) -> EpisodeSpec:
    """``spec`` once more, on the same device, with chances of its own."""
    chance = seeds.digest(kind, spec.sampling_seed)
    return replace(spec, group_id=f"{spec.group_id}.{kind}", sampling_seed=chance, guidance=guidance)


def added(batch: Batch, helped: Batch) -> Batch:
    """``batch`` with the groups of ``helped``, each by the id of the group of failures that it is for."""
    found: dict[str, dict[str, Group]] = {_LED: {}, _SHOWN: {}}
    for group in helped.groups:
        failed, _, kind = group.group_id.rpartition(".")
        found[kind][failed] = group
    shown = {failed: _demonstration(group) for failed, group in found[_SHOWN].items()}
    return replace(
        batch,
        pictures={**batch.pictures, **helped.pictures},
        led=found[_LED],
        demonstrated={failed: group for failed, group in shown.items() if group.trajectories},
    )


def _demonstration(group: Group) -> Group:
    """What can be imitated of it: the oracle's turns of an episode that succeeds."""
    done = (_by_oracle(t) for t in group.trajectories if t.success)
    return group.model_copy(update={"trajectories": tuple(t for t in done if t.turns)})


def _by_oracle(trajectory: Trajectory) -> Trajectory:
    turns = tuple(
        turn
        for turn in trajectory.turns
        if turn.rejected is None and trajectory.decided(turn.index).get(BY) == BY_ORACLE
    )
    return trajectory.model_copy(update={"turns": turns})
