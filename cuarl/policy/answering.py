"""What decides an answer's next token, and when it ends. The same for every policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from cuarl.policy.base import Policy
from cuarl.policy.distribution import draw, log_softmax, truncate, widest
from cuarl.policy.jobs import Job, SamplingHalted
from cuarl.trajectory import Sampled


def draw_next(policy: Policy, jobs: Sequence[Job], logits: torch.Tensor) -> torch.Tensor:
    """Append a token to every unfinished job by its ``logits`` (jobs, V) float32; (jobs,) tokens to go on with.

    Raises SamplingHalted once the policy is.
    """
    if policy.halted():
        raise SamplingHalted
    device = logits.device
    temperature = torch.tensor([j.params.temperature or 1.0 for j in jobs], device=device)[:, None]
    logprobs = log_softmax(logits, temperature, policy.suppressed())
    if any(j.params.top_k or j.params.top_p < 1 for j in jobs):
        top_k = torch.tensor([j.params.top_k for j in jobs], device=device)
        logprobs = truncate(logprobs, top_k, torch.tensor([j.params.top_p for j in jobs], device=device))
    chance = torch.tensor([j.next_chance() for j in jobs], dtype=widest(device), device=device)
    drawn = draw(logprobs, chance)
    for job, token, logprob in zip(jobs, drawn.tokens.tolist(), drawn.logprobs.tolist(), strict=True):
        if job.stop is None:
            job.tokens.append(token)
            job.logprobs.append(logprob)
            job.stop = why_stop(policy, job)
    return drawn.tokens


def room(policy: Policy, job: Job) -> int:
    """The most tokens that an answer may have."""
    return min(job.params.max_tokens, policy.context - len(job.prompt.ids))


def sampled(policy: Policy, job: Job) -> Sampled:
    """The record of a finished job."""
    assert job.stop is not None
    return Sampled(
        prompt_ids=job.prompt.ids,
        images=tuple(s.ref for s in job.prompt.screenshots),
        token_ids=tuple(job.tokens),
        logprobs=tuple(job.logprobs),
        text=policy.decode(job.tokens),
        stop=job.stop,
        temperature=job.params.temperature,
        policy=policy.name,
        policy_version=policy.version,
    )


def why_stop(policy: Policy, job: Job) -> Literal["eos", "length", "stop_string"] | None:
    """What ends a job with the token that it has just got; None if it goes on."""
    if job.tokens[-1] in policy.special.eos:
        return "eos"
    if job.params.stop and any(s in policy.decode(job.tokens) for s in job.params.stop):
        return "stop_string"
    return "length" if len(job.tokens) >= room(policy, job) else None
