"""Re-scoring: ids and log-probabilities of an endpoint's answers, made with a policy in this process.

Many endpoints give text only. What was sampled can then be guessed (the text, tokenised anew) and scored under our own
weights. That is an approximation: a policy may have sampled other tokens that spell the same text, and the server may
have seen another prompt or computed other numbers. So such turns stay marked as not exact, and only whoever asks for it
trains on them (``accept``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import anyio.to_thread
import torch

from cuarl.errors import SamplerError
from cuarl.policy.base import Policy
from cuarl.policy.inputs import Row
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import PromptTooLong, Sampler, SamplerCapabilities, SampleRequest
from cuarl.policy.sampling.batcher import Batcher
from cuarl.policy.score import Scorer
from cuarl.trajectory import Group, Sampled, Trajectory


@dataclass(frozen=True, slots=True)
class _Answer:
    prompt: Prompt
    ids: tuple[int, ...]
    temperature: float


class RescoringSampler:
    """Samples from ``inner`` and fills in, by ``policy``, what it can't give exactly; exact samples pass unchanged.

    ``policy`` must have the weights that ``inner`` samples from.
    """

    def __init__(self, inner: Sampler, policy: Policy, *, max_batch: int = 64) -> None:
        self.inner, self.policy, self.rescored = inner, policy, 0
        self._scorer = Scorer(policy).eval()
        self._batcher: Batcher[_Answer, tuple[float, ...]] = Batcher(
            self._score, lambda answer: (len(answer.prompt.ids), answer.ids), max_batch=max_batch
        )

    @property
    def capabilities(self) -> SamplerCapabilities:
        """Of the endpoint: what is recomputed is not exact."""
        return self.inner.capabilities

    async def sees(self, width: int, height: int) -> tuple[int, int] | None:
        """The size at which the model sees a picture."""
        return self.policy.seen_size(width, height)

    def join(self) -> AbstractContextManager[None]:
        """Inside, scoring waits for this episode's next answer."""
        return self._batcher.join()

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Sample, and score if need be. Raises ``SamplerError``."""
        sampled = await self.inner.sample(request)
        if isinstance(sampled, PromptTooLong) or (sampled.exact and sampled.logprobs is not None):
            return sampled
        # one place is left, since an answer has at least one token
        prompt = self.policy.render(request.messages, max_tokens=self.policy.context - 1)
        if isinstance(prompt, PromptTooLong):
            return prompt
        ids = self._ids(sampled, room=self.policy.context - len(prompt.ids))
        if not ids:
            return sampled
        logprobs = await self._batcher.ask(_Answer(prompt, ids, request.params.temperature))
        self.rescored += 1
        return sampled.model_copy(
            update={"prompt_ids": prompt.ids, "token_ids": ids, "logprobs": logprobs, "exact": False}
        )

    async def close(self) -> None:
        """Close the endpoint's connections."""
        await self.inner.close()

    def _ids(self, sampled: Sampled, *, room: int) -> tuple[int, ...]:
        if sampled.token_ids or (sampled.nothing_said and not sampled.text):
            return sampled.token_ids[:room]
        ids = self.policy.encode_answer(sampled.text)
        # the end of turn was not sampled where an answer was cut off; alone it stays, as nothing can't be scored
        ended = sampled.stop == "eos" or len(ids) == 1
        return (ids if ended else ids[:-1])[:room]

    async def _score(self, answers: Sequence[_Answer]) -> list[tuple[float, ...]]:
        try:
            return await anyio.to_thread.run_sync(self._score_now, answers)
        except (RuntimeError, ValueError) as error:
            raise SamplerError(
                f"re-scoring failed: {str(error).splitlines()[0]}", where=f"policy {self.policy.name}"
            ) from error

    def _score_now(self, answers: Sequence[_Answer]) -> list[tuple[float, ...]]:
        rows = [Row(a.prompt.ids, a.prompt.screenshots, a.ids) for a in answers]
        with torch.no_grad():
            temperatures = torch.tensor([a.temperature for a in answers], device=self.policy.device)
            scores = self._scorer(self.policy.collate(rows, padding="right"), temperatures).logprobs.cpu()
        return [tuple(row[: len(a.ids)].tolist()) for a, row in zip(answers, scores, strict=True)]


def accept(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups with their re-scored turns let into training; their record in the store keeps saying what they are."""
    return tuple(g.model_copy(update={"trajectories": tuple(map(_accepted, g.trajectories))}) for g in groups)


def _accepted(trajectory: Trajectory) -> Trajectory:
    turns = [
        turn.model_copy(update={"sampled": turn.sampled.model_copy(update={"exact": True})})
        if turn.sampled is not None and not turn.sampled.exact and turn.sampled.logprobs is not None
        else turn
        for turn in trajectory.turns
    ]
    return trajectory.model_copy(update={"turns": tuple(turns)})
