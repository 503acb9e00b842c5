"""Sampling answers for a batch of prompts: one pass over the distinct prompts, then one token a pass.

No ``generate``: its bookkeeping costs more than the forward pass of a small model, and launch-binds a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from cuarl.policy.decoder import PromptCache, RowCache, causal_mask
from cuarl.policy.distribution import Chance, draw, log_softmax, truncate, widest
from cuarl.policy.inputs import ModelInputs, Row
from cuarl.policy.model import PolicyModel
from cuarl.policy.render import Prompt
from cuarl.policy.sampler import SamplingParams
from cuarl.trajectory import Sampled

_COMPACT_BELOW = 0.5
"""Share of unfinished rows at which dropping the others pays for copying the cache."""


@dataclass(slots=True)
class Job:
    """One answer in the making. ``seed`` alone decides its draws."""

    prompt: Prompt
    params: SamplingParams
    seed: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stop: Literal["eos", "length", "stop_string"] | None = None
    chance: Chance = field(init=False)

    def __post_init__(self) -> None:
        self.chance = Chance(self.seed)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.params.temperature == 0

    def next_chance(self) -> float:
        """The number that decides the next token; negative for greedy."""
        return -1.0 if self.greedy else self.chance.at(len(self.tokens))


def generate(policy: PolicyModel, jobs: Sequence[Job]) -> list[Sampled]:
    """Answer every job. ``policy`` is put into evaluation mode."""
    policy.model.eval()
    with policy.folded(), torch.inference_mode():
        _Batch(policy, jobs).run()
    return [_sampled(policy, job) for job in jobs]


class _Batch:
    """The rows still being sampled, in the order of their caches."""

    def __init__(self, policy: PolicyModel, jobs: Sequence[Job]) -> None:
        self.policy, self.rows = policy, list(jobs)

    def run(self) -> None:
        policy = self.policy
        inputs = policy.collate([Row(job.prompt.ids, job.prompt.screenshots) for job in self.rows])
        hidden, cache = self._prompts(inputs)
        # (B, Lp) for left-padded prompts; None where nothing is padded, which is the cheaper attention
        seen = inputs.prompt_mask[inputs.prompt_of] if inputs.padded else None
        position = inputs.answer_start[inputs.prompt_of]
        while True:
            tokens = self._draw(policy.decoder.logits(hidden))
            alive = [i for i, job in enumerate(self.rows) if job.stop is None]
            if not alive:
                return
            if len(alive) <= _COMPACT_BELOW * len(self.rows):
                keep = torch.tensor(alive, device=tokens.device)
                self.rows = [self.rows[i] for i in alive]
                tokens, position = tokens[keep], position[keep]
                seen = None if seen is None else seen[keep]
                cache.keep(keep)
            if seen is not None:
                seen = torch.nn.functional.pad(seen, (0, 1), value=True)
            hidden = policy.decoder.run(
                policy.decoder.embed(tokens[:, None]), position.expand(3, 1, -1).transpose(1, 2),
                None if seen is None else seen[:, None, None], cache,
            )[:, -1]  # fmt: skip
            cache.advance(1)
            position = position + 1

    def _prompts(self, inputs: ModelInputs) -> tuple[torch.Tensor, RowCache]:
        """Encode the distinct prompts; the last hidden state (B, D) and the cache of each row."""
        policy, shared = self.policy, PromptCache()
        hidden, deep = policy.embed_prompts(inputs)
        mask = causal_mask(inputs.prompt_mask) if inputs.padded else None
        index = inputs.vision.index if inputs.vision else None
        last = policy.decoder.run(
            hidden, inputs.prompt_positions, mask, shared, image_index=index, deep=deep, wanted=inputs.last[:, None]
        )
        return last[:, 0][inputs.prompt_of], RowCache(shared, inputs.prompt_of)

    def _draw(self, logits: torch.Tensor) -> torch.Tensor:
        """Append a token to every unfinished row; (rows,) tokens to go on with."""
        jobs, device = self.rows, logits.device
        temperature = torch.tensor([j.params.temperature or 1.0 for j in jobs], device=device)[:, None]
        logprobs = log_softmax(logits, temperature, self.policy.special.suppressed)
        if any(j.params.top_k or j.params.top_p < 1 for j in jobs):
            top_k = torch.tensor([j.params.top_k for j in jobs], device=device)
            logprobs = truncate(logprobs, top_k, torch.tensor([j.params.top_p for j in jobs], device=device))
        chance = torch.tensor([j.next_chance() for j in jobs], dtype=widest(device), device=device)
        drawn = draw(logprobs, chance)
        for job, token, logprob in zip(jobs, drawn.tokens.tolist(), drawn.logprobs.tolist(), strict=True):
            if job.stop is None:
                job.tokens.append(token)
                job.logprobs.append(logprob)
                job.stop = self._why_stop(job)
        return drawn.tokens

    def _why_stop(self, job: Job) -> Literal["eos", "length", "stop_string"] | None:
        if job.tokens[-1] in self.policy.special.eos:
            return "eos"
        if job.params.stop and any(s in self.policy.decode(job.tokens) for s in job.params.stop):
            return "stop_string"
        room = min(job.params.max_tokens, self.policy.context - len(job.prompt.ids))
        return "length" if len(job.tokens) >= room else None


def _sampled(policy: PolicyModel, job: Job) -> Sampled:
    assert job.stop is not None
    return Sampled(
        prompt_ids=job.prompt.ids, images=tuple(s.ref for s in job.prompt.screenshots), token_ids=tuple(job.tokens),
        logprobs=tuple(job.logprobs), text=policy.decode(job.tokens), stop=job.stop,
        temperature=job.params.temperature, policy=policy.name, policy_version=policy.version,
    )  # fmt: skip
