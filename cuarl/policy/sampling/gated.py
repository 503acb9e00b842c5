"""An in-process sampler that lets somebody decide, before each batch, when it may run."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence

from cuarl.policy.base import Policy
from cuarl.policy.jobs import Job
from cuarl.policy.sampling.local import LocalSampler
from cuarl.trajectory import Sampled


class GatedSampler(LocalSampler):
    """Awaits ``passing`` before every batch, when all who join are waiting; then the weights may be exchanged.

    ``max_batch`` bounds the rows of one forward pass; a batch is answered whole, however many passes it takes.
    """

    def __init__(self, policy: Policy, passing: Callable[[], Awaitable[None]], *, max_batch: int = 256) -> None:
        super().__init__(policy, max_batch=sys.maxsize)
        self._passing, self._rows = passing, max_batch

    async def _run(self, jobs: Sequence[Job]) -> list[Sampled]:
        await self._passing()
        answers: list[Sampled] = []
        for start in range(0, len(jobs), self._rows):
            answers += await super()._run(jobs[start : start + self._rows])
        return answers
