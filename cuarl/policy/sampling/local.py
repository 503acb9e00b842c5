"""The in-process sampler: answers from a ``Policy``, batched over concurrent episodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import anyio
import anyio.to_thread

from cuarl.errors import AgentError, SamplerError
from cuarl.policy.base import Policy
from cuarl.policy.generate import generate
from cuarl.policy.jobs import Job, SamplingHalted
from cuarl.policy.sampler import PromptTooLong, SamplerCapabilities, SampleRequest
from cuarl.policy.sampling.batcher import Batcher
from cuarl.trajectory import Sampled


class LocalSampler:
    """Samples from ``policy`` with its weights as they are when a batch runs; samples carry its version.

    Episodes say ``with sampler.join():`` for as long as they may ask; a forward pass starts when all of them wait. It
    runs in a worker thread, so that environments go on meanwhile. The same batches since the policy's
    ``forget_prompts`` give the same samples on a CPU, bit for bit; a row's draws depend on its own seed alone, whatever
    else is in the batch.

    ``max_batch`` bounds the rows of one pass. ``max_wait_s`` is how long an episode waits for the others before it
    starts a pass without them: a short one suits slow environments, at the price of reproducibility; the default only
    keeps a stuck episode from holding up the rest.
    """

    def __init__(self, policy: Policy, *, max_batch: int = 256, max_wait_s: float | None = 60.0) -> None:
        self.policy = policy
        self._batcher: Batcher[Job, Sampled] = Batcher(
            self._run, lambda job: job.seed, max_batch=max_batch, max_wait_s=max_wait_s
        )

    @property
    def capabilities(self) -> SamplerCapabilities:
        """Everything is exact."""
        return SamplerCapabilities(token_ids=True, logprobs=True, images=True, name=self.policy.name)

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture; None if its family does not tell."""
        return self.policy.seen_size(width, height)

    def join(self) -> AbstractContextManager[None]:
        """Inside, batches wait for this episode's next request."""
        return self._batcher.join()

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Answer one prompt in the next batch. Raises SamplerError if it fails, AgentError if it can't be made."""
        limit = self.policy.context - 1
        if request.max_prompt_tokens is not None:
            limit = min(limit, request.max_prompt_tokens)
        try:
            prompt = self.policy.render(request.messages, max_tokens=limit)
        except ValueError as error:  # a family's own processor, of pictures that it takes no size of
            raise AgentError(str(error)) from error
        if isinstance(prompt, PromptTooLong):
            return prompt
        try:
            return await self._batcher.ask(Job(prompt, request.params, request.seed))
        except SamplingHalted:
            # outside the batch, which nothing breaks into, the cancellation is met
            await anyio.sleep_forever()
            raise

    async def close(self) -> None:
        """Nothing to release: the model belongs to who loaded it."""

    async def _run(self, jobs: Sequence[Job]) -> list[Sampled]:
        try:
            return await anyio.to_thread.run_sync(generate, self.policy, jobs)
        except (RuntimeError, ValueError) as error:  # torch's own, out of memory included
            raise SamplerError(
                f"sampling failed: {str(error).splitlines()[0]}",
                where=f"{len(jobs)} prompts, policy {self.policy.name}",
                hint="--max-concurrent-rollouts 32",
            ) from error
