"""The checkpoint of a run that did best, by what was measured while it was trained."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from cuarl.errors import ConfigError
from cuarl.evaluate.curve import Curve, curves
from cuarl.evaluate.suite import RESULTS, VALIDATION, Evaluation, overruled, read_results
from cuarl.run.checkpoints import saved_steps
from cuarl.suggest import did_you_mean

METRICS = "metrics.jsonl"


class Best(NamedTuple):
    """A step that has a checkpoint, and why it is the one."""

    step: int
    why: str
    fair: bool
    """Whether it was chosen by tasks that are kept aside for that, so that success in evaluations is no better than it
    is."""


def best_step(run: Path, metric: str = "", said: Mapping[str, bool] = MappingProxyType({})) -> Best:
    """The step with the highest value of ``metric``, the earliest of several.

    Without one it is success in validation, where the run keeps tasks aside for it, else in its evaluations; by the
    verdicts that people ``said`` instead, by episode. Only steps that have a checkpoint count. Raises ConfigError if
    none of them has a value.
    """
    saved = set(saved_steps(run / "checkpoints"))
    recorded = [] if metric else _evaluations(run, saved)
    there = [overruled(one, said) for one in recorded]
    validated = [one for one in there if one.settings.get("purpose") == VALIDATION]
    values = _metric(run, metric) if metric else _success(run, validated or there)
    found = {step: value for step, value in values.items() if step in saved and math.isfinite(value)}
    what = metric or ("success in validation" if validated else "success in an evaluation")
    if not found:
        have = ", ".join(map(str, sorted(saved))) or "none"
        raise ConfigError(
            f"no checkpoint of the run has a value of {what} (there are checkpoints of steps {have})",
            where=str(run),
            hint=f"cuarl eval {run.name}",
        )
    step = max(found, key=lambda one: (found[one], -one))
    by = ", with verdicts of people" if there != recorded else ""
    why = f"step {step} of {len(found)} checkpoints has the highest {what}, {found[step]:.3g}{by}"
    return Best(step, why, bool(validated))


def _evaluations(run: Path, saved: set[int]) -> list[Evaluation]:
    """Those of steps that have a checkpoint."""
    there = [read_results(path) for path in sorted((run / "evals").glob(f"*/{RESULTS}"))]
    return [one for one in there if one.step in saved]


def _success(run: Path, there: Sequence[Evaluation]) -> Mapping[int, float]:
    """By step, of the evaluations under equal conditions that most checkpoints have."""
    made = curves(run.name, there)
    if not made:
        return {}
    longest: Curve = max(made, key=lambda curve: len(curve.points))
    return {p.step: p.overall.success_rate for p in longest.points if p.overall.success_rate is not None}


def _metric(run: Path, name: str) -> Mapping[int, float]:
    path = run / METRICS
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []
    known = sorted({key for row in rows for key in row if "/" in key})
    if name not in known:
        raise ConfigError(f'the run has no metric "{name}"{did_you_mean(name, known)}', where=str(path))
    return {row["step"]: row[name] for row in rows if name in row}
