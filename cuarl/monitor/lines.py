"""Metrics and events in one line each, for people: what the console and ``monitor tail`` print."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cuarl.safe_text import masked, printable

HEADLINE = (
    "episode/success_rate", "reward/mean", "group/frac_mixed", "policy/loss", "policy/entropy", "policy/kl_sampler",
    "async/staleness_mean", "async/staleness_max", "async/dropped", "sft/nll", "optim/grad_norm", "time/step_s",
    "eval/*/success_rate", "eval/*/ci_low", "eval/*/ci_high", "eval/*/n",
)  # fmt: skip
"""What is shown of a step unless other names are asked for, as globs, in this order."""


def chosen(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that match one of the patterns, in the order of the patterns."""
    names = list(names)
    return list(dict.fromkeys(name for pattern in patterns for name in names if fnmatchcase(name, pattern)))


def metrics_line(step: int, values: Mapping[str, Any], patterns: Sequence[str] = HEADLINE) -> str:
    """``step 12  reward/mean 0.43  …``, or nothing if no name matches."""
    parts = [f"{name} {number(values[name])}" for name in chosen(values, patterns)]
    return printable("  ".join([f"step {step}", *parts])) if parts else ""


def event_line(kind: str, data: Mapping[str, Any]) -> str:
    """``checkpoint  path=…  step=8``."""
    parts = [f"{key}={number(value)}" for key, value in data.items() if value not in (None, "", [], {})]
    return printable(masked("  ".join([kind, *parts])))


def number(value: Any) -> str:
    """A number with four significant digits; anything else as text."""
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    if value == 0 or (math.isfinite(value) and 1e-3 <= abs(value) < 1e5):
        return f"{value:.4g}"
    return f"{value:.2e}" if math.isfinite(value) else str(value)


def span(seconds: float | None) -> str:
    """``3.1 s``, ``14 min``, ``2 h 5 min``, ``3 d 4 h``."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if 0 < seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
