"""Evaluations with their baselines and differences, and two of anything side by side on the same instances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from cuarl.monitor.web.desk import Desk, Difference, Instances
from cuarl.monitor.web.views import asked
from cuarl.monitor.web.views.runs import View
from cuarl.monitor.web.views.turns import Shot, shots
from cuarl.store.judged import Interval
from cuarl.store.pages import EpisodeLine
from cuarl.store.records import EvaluationRecord
from cuarl.trajectory import Trajectory
from cuarl.web.refusal import Refusal

_MOST = 2_000
_LISTED = 100


# --- what was measured ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """Somebody's share of successes, and how it differs from what is evaluated."""

    name: str
    rate: Interval | None
    difference: Difference | None = None
    """What is evaluated minus this."""
    evaluation: EvaluationRecord | None = None


def evaluations(desk: Desk, request: Request) -> View:
    """All evaluations, the newest first."""
    run = request.query_params.get("run") or None
    found = desk.evaluations(run)[::-1][:_LISTED] if run else desk.judged(desk.pages.newest_evaluations(_LISTED))
    runs = {one.id: one.name for one in desk.pages.runs_by_id(sorted({e.run_id for e in found}))}
    return "evaluations.html", {"evaluations": found, "runs": runs, "run": run}


def evaluation(desk: Desk, request: Request) -> View:
    """One evaluation: by task, and beside its baselines and the other evaluations of its run."""
    record = known(desk, request.path_params["evaluation_id"])
    lines = desk.pages.episode_lines({"evaluation": record.id}, limit=_MOST)
    mine = instances(lines)
    rows = [
        Row(name, _rate(desk, _of_baseline(b.outcomes)), _difference(desk, _of_baseline(b.outcomes), mine))
        for name, b in record.baselines.items()
    ]
    rows += [
        _beside(desk, other, mine)
        for other in desk.pages.evaluations(run=record.run_id)
        if other.id != record.id and other.suite == record.suite
    ][:20]
    run = desk.pages.runs_by_id([record.run_id])
    values = {
        "evaluation": record,
        "run": run[0] if run else None,
        "rate": _rate(desk, mine),
        "rows": rows,
        "tasks": by_task(lines),
        "failed": sum(line.success is None for line in lines),
        "overruled": sum(line.human is not None for line in lines),
    }
    return "evaluation.html", values


def known(desk: Desk, evaluation_id: str) -> EvaluationRecord:
    """An evaluation. Raises Refusal."""
    found = desk.pages.evaluation_by_id(evaluation_id)
    if found is None:
        raise Refusal(f'there is no evaluation "{evaluation_id}" in the store', status=404)
    return found


def _beside(desk: Desk, other: EvaluationRecord, mine: Instances) -> Row:
    theirs = instances(desk.pages.episode_lines({"evaluation": other.id}, limit=_MOST))
    return Row(f"step {other.step}", _rate(desk, theirs), _difference(desk, theirs, mine), other)


def instances(lines: Sequence[EpisodeLine]) -> Instances:
    """Successes by task and seed, of the episodes with a verdict."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for line in lines:
        if line.success is not None:
            found[line.task_id, line.seed].append(float(line.success))
    return found


def _of_baseline(outcomes: Sequence[tuple[str, str, bool | None]]) -> Instances:
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for task, seed, success in outcomes:
        if success is not None:
            found[task, int(seed)].append(float(success))
    return found


def _rate(desk: Desk, found: Instances) -> Interval | None:
    by: dict[str, list[float]] = defaultdict(list)
    for (task, _), values in found.items():
        by[task] += values
    return desk.statistics.rate(by) if by else None


def _difference(desk: Desk, a: Instances, b: Instances) -> Difference | None:
    try:
        return desk.statistics.compare(a, b)
    except ValueError:  # they have no instance in common
        return None


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task's episodes."""

    task_id: str
    episodes: Sequence[EpisodeLine]

    @property
    def successes(self) -> int:
        """How many."""
        return sum(e.success is True for e in self.episodes)

    @property
    def judged(self) -> int:
        """How many have a verdict."""
        return sum(e.success is not None for e in self.episodes)


def by_task(lines: Sequence[EpisodeLine]) -> list[TaskLine]:
    """The worst tasks first."""
    found: dict[str, list[EpisodeLine]] = defaultdict(list)
    for line in lines:
        found[line.task_id].append(line)
    made = [TaskLine(task, episodes) for task, episodes in found.items()]
    return sorted(made, key=lambda one: (one.successes / max(1, one.judged), one.task_id))


# --- side by side --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """What both sides did at one instance."""

    task_id: str
    seed: int
    a: Sequence[EpisodeLine]
    b: Sequence[EpisodeLine]

    @property
    def differs(self) -> bool:
        """Whether one did better."""
        return _share(self.a) != _share(self.b)


def _share(lines: Sequence[EpisodeLine]) -> float | None:
    judged = [e.success for e in lines if e.success is not None]
    return sum(judged) / len(judged) if judged else None


def compare(desk: Desk, request: Request) -> View:
    """Two sides (evaluations, or runs), and the instances that both have met; then two episodes of one of these."""
    query = request.query_params
    a, b = query.get("a", ""), query.get("b", "")
    x, y = query.get("x", ""), query.get("y", "")
    sides = [_side(desk, text) if text else [] for text in (a, b)]
    pairs = _pairs(*sides)
    found = desk.pages.load([i for i in (x, y) if i])
    chosen = [
        _Player(found[i], shots(found[i].turns, found[i].final_screenshot)) if i in found else None for i in (x, y)
    ]
    first, second = (instances(side) for side in sides)
    values = {
        "a": a,
        "b": b,
        "x": x,
        "y": y,
        "names": [_name(desk, text) for text in (a, b)],
        "pairs": pairs[:500],
        "only": query.get("only") == "different",
        "chosen": chosen,
        "difference": _difference(desk, first, second),
        "rates": [_rate(desk, first), _rate(desk, second)],
        "choices": _choices(desk),
        "length": max([len(one.strip) for one in chosen if one] or [0]),
        "at": asked.whole(query, "turn", 0, most=10**6) or 0,
    }
    return "compare.html", values


@dataclass(frozen=True, slots=True)
class _Player:
    episode: Trajectory
    strip: Sequence[Shot]


def _side(desk: Desk, text: str) -> list[EpisodeLine]:
    kind, _, name = text.partition(":")
    if kind == "evaluation":
        return desk.pages.episode_lines({"evaluation": known(desk, name).id}, limit=_MOST)
    if kind == "run":
        return desk.pages.episode_lines({"run": name}, limit=_MOST)
    raise Refusal("a side is evaluation:ID or run:ID", param="a")


def _name(desk: Desk, text: str) -> str:
    kind, _, name = text.partition(":")
    if kind == "evaluation":
        record = known(desk, name)
        run = desk.pages.runs_by_id([record.run_id])
        return f"{run[0].name if run else record.run_id}, step {record.step}"
    run = desk.pages.runs_by_id([name]) if name else []
    return run[0].name if run else name


def _pairs(a: Sequence[EpisodeLine], b: Sequence[EpisodeLine]) -> list[Pair]:
    """The instances in common, those first that turned out differently."""
    found: list[dict[tuple[str, int], list[EpisodeLine]]] = [defaultdict(list), defaultdict(list)]
    for side, lines in zip(found, (a, b), strict=True):
        for line in lines:
            side[line.task_id, line.seed].append(line)
    pairs = [Pair(*key, found[0][key], found[1][key]) for key in sorted(set(found[0]) & set(found[1]))]
    return sorted(pairs, key=lambda pair: (not pair.differs, pair.task_id, pair.seed))


def _choices(desk: Desk) -> list[tuple[str, str]]:
    """What may be compared: the newest evaluations, then the newest runs that only collected."""
    evaluated = desk.pages.newest_evaluations(_LISTED)
    names = {one.id: one.name for one in desk.pages.runs_by_id(sorted({e.run_id for e in evaluated}))}
    found = [(f"evaluation:{e.id}", f"{names.get(e.run_id, e.run_id)} · step {e.step} · {e.suite}") for e in evaluated]
    found += [
        (f"run:{one.id}", f"{one.name} · {one.command}")
        for one in desk.pages.run_lines(limit=30)
        if one.command != "train"
    ]
    return found
