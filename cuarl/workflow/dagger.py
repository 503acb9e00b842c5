"""DAgger: the policy plays, an oracle says what it should have done, and all that was said so far is imitated.

Dataset aggregation (arXiv:1011.0686, algorithm 3.1): in step i each turn is the oracle's with probability
``beta decay^(i−1)``, and the policy's otherwise; what the oracle would do is known in every one of them. A step
imitates what is new, and some of everything before. Episodes go through the run's one collector into the one store;
what is imitated of earlier steps is read from there, so that a resumed run goes on with the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cuarl.config.schema import ExperimentConfig
from cuarl.rollout.spec import Guidance
from cuarl.train.batch import Batch
from cuarl.train.processes import gather_batch, waited_for
from cuarl.trajectory import Group, Trajectory
from cuarl.workflow.imitation import Encode, Imitation, alone, labelled
from cuarl.workflow.rehearsal import Rehearsal

if TYPE_CHECKING:
    from cuarl.store import Store
    from cuarl.train.loop import Collect
    from cuarl.workflow.collector import Guide


def guide(config: ExperimentConfig) -> Guide:
    """How much of a step's episodes the oracle plays."""
    learning = config.learning

    def of_step(step: int) -> Guidance:
        return Guidance(share=learning.dagger_beta * learning.dagger_decay ** (step - 1))

    return of_step


class Aggregate:
    """Everything that may be imitated again: the episodes of other runs, and the labelled ones of this.

    Only the main process has one.
    """

    def __init__(self, config: ExperimentConfig, found: Imitation, encode: Encode, mine: Sequence[Trajectory]) -> None:
        """``found``: of other runs; ``mine``: what this run has collected before it was resumed."""
        self._config, self._found, self._encode = config, found, encode
        self._episodes = [*found.episodes]
        self.add(mine)

    def add(self, collected: Sequence[Trajectory]) -> None:
        """Take in the episodes of a step, or of several."""
        told = [labelled(t, self._encode) for t in sorted(collected, key=lambda t: (t.step, t.episode_id))]
        self._episodes += [t for t in told if t.turns]

    def drawn(self, count: int, step: int) -> Batch:
        """So many for a step, each at most once, as what was collected earlier."""
        rng = random.Random(f"{self._config.seed}/aggregate/{step}")
        chosen = rng.sample(self._episodes, min(count, len(self._episodes)))
        return Batch((), self._found.pictures(chosen), importance=self._found.importance, earlier=alone(chosen))


class Dagger:
    """Collects labelled episodes with ``collect``, and adds some of what there was before."""

    def __init__(
        self, config: ExperimentConfig, collect: Collect, encode: Encode, beside: Beside | None = None
    ) -> None:
        """``beside`` is None in all processes but the main one."""
        self._config, self._collect, self._encode, self._beside = config, collect, encode, beside

    async def __call__(self, step: int, policy_version: int) -> Batch:
        """A ``train.loop.Collect``."""
        fresh = await self._collect(step, policy_version)
        groups = tuple(_labelled(group, self._encode) for group in fresh.groups)
        with waited_for():
            mine = await self._beside(groups, step) if self._beside is not None else Batch((), {})
        shared = gather_batch(mine)
        return Batch(
            groups,
            {**shared.pictures, **fresh.pictures},
            importance=shared.importance,
            earlier=shared.earlier,
            rehearsal=shared.rehearsal,
        )


class Beside:
    """What the main process adds to the new episodes of a step: earlier ones, and what is rehearsed."""

    def __init__(self, config: ExperimentConfig, aggregate: Aggregate, rehearsal: Rehearsal | None) -> None:
        self._ratio, self._aggregate, self._rehearsal = config.learning.dagger_aggregate, aggregate, rehearsal

    async def __call__(self, groups: Sequence[Group], step: int) -> Batch:
        """A batch without the new groups."""
        collected = [t for group in groups for t in group.trajectories]
        drawn = self._aggregate.drawn(round(self._ratio * len(collected)), step)
        self._aggregate.add(collected)
        if self._rehearsal is None:
            return drawn
        return await self._rehearsal.added(drawn, step, beside=groups)


def _labelled(group: Group, encode: Encode) -> Group:
    return group.model_copy(update={"trajectories": tuple(labelled(t, encode) for t in group.trajectories)})


def collected_before(store: Store, run_id: str) -> list[Trajectory]:
    """The training episodes of a run that is resumed; none of one that begins."""
    return list(store.trajectories(run=run_id, purpose="train"))
