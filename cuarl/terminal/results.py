"""Tables of success rates: one row a category, difficulty or task, never a rate without its n and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuarl.evaluate.summary import Outcome, Summary, breakdown, by_about, summarise
from cuarl.tasks.task import CATEGORIES, DIFFICULTIES, SPLITS
from cuarl.terminal.output import print_table

SUMMARY_COLUMNS = ("n", "tasks", "success", "95 % interval", "false claims", "side effects", "steps", "failed")


def percent(share: float | None) -> str:
    """``92.5 %``, or ``-`` where nothing was evaluated."""
    return "-" if share is None else f"{100 * share:.1f} %"


def interval(summary: Summary) -> str:
    """``88.0–95.4 %``."""
    if summary.ci_low is None or summary.ci_high is None:
        return "-"
    return f"{100 * summary.ci_low:.1f}–{100 * summary.ci_high:.1f} %"


def headline(summary: Summary) -> str:
    """``success 92.5 % (95 % interval 88.0–95.4 %, 200 episodes of 60 tasks)``."""
    if not summary.n:
        return f"no verdict in {summary.failed} episodes"
    lost = f", {summary.failed} failed" if summary.failed else ""
    counted = f"{summary.n} episodes of {summary.tasks} tasks{lost}"
    return f"success {percent(summary.success_rate)} (95 % interval {interval(summary)}, {counted})"


def print_summaries(outcomes: Sequence[Outcome], baselines: Mapping[str, Sequence[Outcome]] | None = None) -> None:
    """Print the table over all episodes, by category, by difficulty and by split, with the success of the baselines."""
    rest = {name: _parts(b) for name, b in (baselines or {}).items()}
    rows = [
        [part, *summary_cells(summary), *(percent(b[part].success_rate if part in b else None) for b in rest.values())]
        for part, summary in _parts(outcomes).items()
    ]
    print_table(("part", *SUMMARY_COLUMNS, *rest), rows, numeric={*SUMMARY_COLUMNS, *rest})


def print_tasks(targets: Mapping[str, Sequence[Outcome]]) -> None:
    """Print one row a task, in the order in which they were evaluated: success with its interval for each target."""
    parts = {name: breakdown(outcomes, "task_id") for name, outcomes in targets.items()}
    tasks = dict.fromkeys(task for part in parts.values() for task in part)
    columns = [column for name in targets for column in ("n", name, "95 % interval")]
    rows = [[task, *(cell for part in parts.values() for cell in _task_cells(part.get(task)))] for task in tasks]
    print_table(("task", *columns), rows, numeric=set(columns))


def _task_cells(s: Summary | None) -> tuple[object, str, str]:
    return (None, "-", "-") if s is None else (s.n, percent(s.success_rate), interval(s).removesuffix(" %"))


def summary_cells(s: Summary) -> list[object]:
    """One row under ``SUMMARY_COLUMNS``."""
    steps = "-" if s.steps_mean is None else f"{s.steps_mean:.1f}"
    return [
        s.n,
        s.tasks,
        percent(s.success_rate),
        interval(s).removesuffix(" %"),
        percent(s.false_completion_rate),
        percent(s.side_effect_rate),
        steps,
        s.failed,
    ]


def _parts(outcomes: Sequence[Outcome]) -> dict[str, Summary]:
    """All, then categories, difficulties and splits in their usual order; one that is all there is isn't repeated."""
    found = {"all": summarise(outcomes)}
    for field, order in (("category", CATEGORIES), ("difficulty", DIFFICULTIES), ("split", SPLITS)):
        by = breakdown(outcomes, field)  # type: ignore[arg-type]
        if len(by) > 1:
            found |= {_name(field, name): by[name] for name in sorted(by, key=lambda n: (*order, n).index(n))}
    for name, values in by_about(outcomes).items():
        found |= {f"{name} {value}": summary for value, summary in values.items() if len(values) > 1}
    return found


def _name(field: str, value: str) -> str:
    """What a part is called in the table; "app" is a category too."""
    return f"new {value}" if field == "split" and value not in ("", "train") else value or "no split"
