"""Metrics and events in one line each, for people: what the console and ``monitor tail`` print."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cuarl.safe_text import masked, printable

_EVALUATED = re.compile(r"eval/(?P<label>.+)/success_rate")
SPARKS = "▁▂▃▄▅▆▇█"


def chosen(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that match one of the patterns, in the order of the patterns."""
    names = list(names)
    return list(dict.fromkeys(name for pattern in patterns for name in names if fnmatchcase(name, pattern)))


def step_line(
    step: int, values: Mapping[str, Any], *, total: int | None = None, left_s: float | None = None, trend: str = ""
) -> str:
    """``step 12/32  success 72 %  reward 0.33  signal 67 %  3.1 s  14 min left``.

    Nothing for what is no training step. What a step has not is left out, and so is what is as it should be: ``failed``
    stands for episodes without a verdict, ``lag`` for episodes that were collected before the step. ``trend`` is a
    ``sparkline`` of success. Usually it has at most 80 characters.
    """
    if not _TRAINED & values.keys():
        return ""
    parts = [f"step {step}/{total}" if total else f"step {step}"]
    parts += [f"{word} {shown(value)}" for word, name, shown in _SHOWN if (value := values.get(name)) is not None]
    if failed := values.get("episode/failed_rate"):
        whose = [name.removeprefix("failure/") for name in values if name.startswith("failure/") and values[name]]
        parts.append(f"failed {_percent(failed)}" + (f" ({', '.join(whose)})" if whose else ""))
    if trend and len(parts) > 1:
        parts[1] += f" {trend}"
    parts += [span(values["time/step_s"])] if "time/step_s" in values else []
    return "  ".join([*parts, f"{span(left_s)} left"] if left_s else parts)


def evaluation_lines(step: int, values: Mapping[str, Any]) -> list[str]:
    """``evaluation at step 16: success 72.0 % (65.4–77.8 %, 200 episodes of settings_eval)``, a line for each."""
    found = [match["label"] for name in values if (match := _EVALUATED.fullmatch(name))]
    return [printable(_evaluation_line(step, label, values)) for label in found]


def _evaluation_line(step: int, label: str, values: Mapping[str, Any]) -> str:
    rate, low, high, n = (values.get(f"eval/{label}/{name}") for name in ("success_rate", "ci_low", "ci_high", "n"))
    within = "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f} %, "
    counted = f"{n or 0:.0f} episodes"
    if label == "validation":
        return f"validation at step {step}: success {_percent(rate, 1)} ({within}{counted})"
    return f"evaluation at step {step}: success {_percent(rate, 1)} ({within}{counted} of {label})"


def sparkline(values: Sequence[float], *, low: float = 0.0, high: float = 1.0) -> str:
    """A bar for each value, from ``low`` to ``high``."""
    top = len(SPARKS) - 1
    return "".join(SPARKS[round(top * min(max((value - low) / (high - low), 0.0), 1.0))] for value in values)


def _percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"


_SHOWN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("success", "episode/success_rate", _percent),
    ("reward", "reward/mean", lambda value: f"{value:.2f}"),
    ("signal", "group/frac_mixed", _percent),
    ("nll", "sft/nll", lambda value: f"{value:.3g}"),
    ("lag", "async/staleness_mean", lambda value: f"{value:.1f}"),
)
"""What is shown of a training step: the word, the metric, and how; in this order."""
_TRAINED = frozenset(name for _, name, _ in _SHOWN) | {"time/step_s"}


def metrics_line(step: int, values: Mapping[str, Any], patterns: Sequence[str]) -> str:
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
        return f"{seconds:.1f} s" if 0 < seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
