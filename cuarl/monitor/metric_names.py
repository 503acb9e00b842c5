"""Every metric name with its meaning.

``docs/reference/metrics.md`` lists them, and ``monitor tail --metric`` completes against them.

Names that follow from a training step are documented where they are computed; what the command line adds to them
(evaluations, shares by tag) is here. ``<…>`` stands for one path segment, or a part of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cuarl.train.metrics import METRICS as TRAIN_METRICS

EVAL_METRICS: Mapping[str, str] = {
    "eval/<suite>/success_rate": "share of successes among the episodes with a verdict",
    "eval/<suite>/ci_low": "lower end of its 95 % interval, clustered by task",
    "eval/<suite>/ci_high": "upper end of its 95 % interval, clustered by task",
    "eval/<suite>/n": "episodes with a verdict: no rate without it",
    "eval/<suite>/false_completion_rate": "share of verdicts in which success was claimed and is not so",
    "eval/<suite>/side_effect_rate": "share of verdicts with changes that the task did not ask for",
    "eval/<suite>/steps_mean": "mean number of turns",
}

METRICS: Mapping[str, str] = {**TRAIN_METRICS, **EVAL_METRICS}
"""Name, possibly with placeholders, and meaning."""

_PATTERNS = {
    name: re.compile("[^/]+".join(map(re.escape, re.split(r"<[^>]*>", name)))) for name in METRICS if "<" in name
}


def documented(name: str) -> str | None:
    """The listed name, perhaps with placeholders, that an emitted one is an instance of; None if there is none."""
    if name in METRICS:
        return name
    return next((listed for listed, pattern in _PATTERNS.items() if pattern.fullmatch(name)), None)
