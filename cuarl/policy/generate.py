"""Answers of a policy to prompts that are rendered."""

from __future__ import annotations

from collections.abc import Sequence

from cuarl.policy.answering import sampled
from cuarl.policy.base import Policy
from cuarl.policy.jobs import Job
from cuarl.trajectory import Sampled


def generate(policy: Policy, jobs: Sequence[Job]) -> list[Sampled]:
    """Answer every job. ``policy`` is put into evaluation mode."""
    policy.model.eval()
    policy.answer(jobs)
    return [sampled(policy, job) for job in jobs]
