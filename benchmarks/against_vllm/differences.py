"""How far the log-probabilities of two computations of one policy are from each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch

from cuarl.policy.inputs import Row
from cuarl.policy.score import Scorer
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.train.batch import Batch
from cuarl.trajectory import Sampled
from cuarl.types import Screenshot

BARS = (0.01, 0.05, 0.1, 0.5)
"""Nats beyond which the share of tokens is told."""


def samples(batch: Batch) -> list[Sampled]:
    """Every answer of a batch."""
    return [t.sampled for g in batch.groups for e in g.trajectories for t in e.turns if t.sampled]


def scored(policy: TransformersPolicy, answers: Iterable[Sampled], pictures: Mapping[str, Screenshot]) -> list[float]:
    """Log-probabilities of the tokens of all answers in nats, as training computes them, one answer at a time."""
    scorer, found = Scorer(policy).eval(), list[float]()
    with torch.no_grad():
        for one in answers:
            row = Row(one.prompt_ids, tuple(pictures[i.digest] for i in one.images), one.token_ids)
            found += scorer(policy.collate([row])).logprobs[0].tolist()
    return found


def recorded(answers: Iterable[Sampled]) -> list[float]:
    """The same as the sampler told them. Raises ValueError for answers without."""
    found = list[float]()
    for one in answers:
        if one.logprobs is None:
            raise ValueError("an answer has no log-probabilities")
        found += one.logprobs
    return found


def difference(theirs: Sequence[float], ours: Sequence[float]) -> dict[str, float | int]:
    """Mean, 99.9th percentile and largest of |theirs - ours|, shares of tokens beyond ``BARS`` and of ratios that are
    clipped at 0.2, and the estimate of KL(theirs, ours) that has no negative values."""
    apart = sorted(abs(a - b) for a, b in zip(theirs, ours, strict=True))
    ratios = [math.exp(b - a) for a, b in zip(theirs, ours, strict=True)]
    n = len(apart)
    found: dict[str, float | int] = {
        "tokens": n,
        "mean": sum(apart) / n,
        "p99_9": apart[min(n - 1, math.ceil(0.999 * n) - 1)],
        "largest": apart[-1],
        "kl": sum(r - 1 - math.log(r) for r in ratios) / n,
        "clipped": sum(abs(r - 1) > 0.2 for r in ratios) / n,
    }
    shares = {f"above_{bar:g}": sum(one > bar for one in apart) / n for bar in BARS}
    return {name: float(f"{value:.4g}") for name, value in (found | shares).items()}
