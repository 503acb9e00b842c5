"""``cuarl eval --curve``: how success went along the steps of runs, from the evaluations that were made."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuarl.errors import ConfigError
from cuarl.evaluate.curve import Curve, Point, Together, curves, distinctions, together
from cuarl.evaluate.suite import RESULTS, overruled, read_results
from cuarl.monitor.plot import Mark, in_characters, svg
from cuarl.run import Run, find_run
from cuarl.terminal.output import console, is_terminal, note, print_json, print_table, print_text
from cuarl.terminal.results import SUMMARY_COLUMNS, percent, summary_cells

if TYPE_CHECKING:
    from cuarl.settings import Settings

_WIDEST = 100
"""Characters of a drawing on a terminal, however wide that is."""


def show_curves(
    names: Sequence[str], settings: Settings, *, out: Path | None, as_json: bool, said: Mapping[str, bool]
) -> None:
    """Print the curves of the runs ``names``, and their mean if they are several; draw them into ``out``.

    ``said`` are the verdicts that people gave, by episode.

    Raises ConfigError for a run without evaluations, and for a file that is no SVG.
    """
    if out is not None and out.suffix != ".svg":
        raise ConfigError("curves are drawn as SVG", where=str(out), hint=f"--out {out.with_suffix('.svg')}")
    found = [curve for name in names for curve in _of_run(name, settings, said)]
    means, told = together(found), distinctions(found)
    if as_json:
        data = {"event": "curves", "curves": list(map(_as_data, found)), "together": [m._asdict() for m in means]}
        print_json(data, line=True)
    else:
        _print(found, _labels(found, told), means)
    if any(told):
        note(
            "evaluated with other settings, so they are lines of their own: "
            + "; ".join(f"{curve.run}, {label}" for curve, label in zip(found, _labels(found, told), strict=True))
        )
    if out is not None:
        out.write_text(_drawn(found, _labels(found, told)), encoding="utf-8")
        note(f"drawn: {out}")


def _of_run(name: str, settings: Settings, said: Mapping[str, bool]) -> list[Curve]:
    run = Run(find_run(settings.runs_dir, name))
    files = sorted(run.evals_dir.glob(f"*/{RESULTS}")) if run.evals_dir.is_dir() else []
    if not files:
        raise ConfigError("the run was never evaluated", where=str(run.path), hint=f"cuarl eval {run.name}")
    return curves(run.name, (overruled(read_results(file), said) for file in files))


def _labels(found: Sequence[Curve], told: Sequence[str]) -> list[str]:
    return [f"{curve.label} ({what})" if what else curve.label for curve, what in zip(found, told, strict=True)]


def _print(found: Sequence[Curve], labels: Sequence[str], means: Sequence[Together]) -> None:
    columns = ("step", *SUMMARY_COLUMNS, "since first", "p")
    for curve, label in zip(found, labels, strict=True):
        print_text(f"{curve.run}, {label}")
        rows = [(point.step, *summary_cells(point.overall), *_since(point)) for point in curve.points]
        print_table(columns, rows, numeric=set(columns))
    if is_terminal(sys.stdout) or os.environ.get("COLUMNS"):
        print_text(in_characters(_lines(found, labels), width=min(console().width, _WIDEST)))
    for m in means:
        note(
            f"{m.label}, step {m.step}: mean of {m.runs} runs {percent(m.mean)} (95 % interval {100 * m.low:.1f}–"
            f"{100 * m.high:.1f} %)"
        )


def _since(point: Point) -> tuple[str, str]:
    found = point.since_first
    return ("-", "-") if found is None else (f"{100 * found.difference:+.1f}", f"{found.p_value:.3g}")


def _as_data(curve: Curve) -> dict[str, Any]:
    points = [
        {
            "step": p.step,
            **p.overall.model_dump(mode="json"),
            "since_first": p.since_first._asdict() if p.since_first else None,
        }
        for p in curve.points
    ]
    return {"run": curve.run, "label": curve.label, "conditions": curve.conditions, "points": points}


def _lines(found: Sequence[Curve], labels: Sequence[str]) -> list[tuple[str, list[Mark]]]:
    several = len(set(labels)) > 1
    return [
        (f"{curve.run}, {label}" if several else curve.run, list(filter(None, map(_mark, curve.points))))
        for curve, label in zip(found, labels, strict=True)
    ]


def _drawn(found: Sequence[Curve], labels: Sequence[str]) -> str:
    title = "success by training step, 95 % intervals" + ("" if len(set(labels)) > 1 else f", {labels[0]}")
    return svg(_lines(found, labels), title=title)


def _mark(point: Point) -> Mark | None:
    s = point.overall
    if s.success_rate is None or s.ci_low is None or s.ci_high is None:
        return None
    return Mark(point.step, s.success_rate, s.ci_low, s.ci_high)
