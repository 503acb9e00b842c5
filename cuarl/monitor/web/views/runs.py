"""The list of runs, a run, and a step of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from cuarl.monitor.web.curves import Chart, chart
from cuarl.monitor.web.desk import Desk
from cuarl.monitor.web.views import asked
from cuarl.monitor.web.views.turns import Running, running
from cuarl.store.costs import costs_of
from cuarl.store.judged import Interval
from cuarl.store.pages import MANY, PAGE, EpisodeLine, TaskShare
from cuarl.store.records import EvaluationRecord, LiveRecord, Purpose, RunRecord
from cuarl.web.refusal import Refusal

View = tuple[str, Mapping[str, Any]]
SILENT_S = 30.0
"""A run that says it is running, and has shown no sign of life for so long, may be gone."""
COLUMNS = {
    "episode/success_rate": "success", "reward/mean": "reward", "group/frac_mixed": "signal",
    "episode/failed_rate": "failed", "policy/kl_sampler": "KL", "time/step_s": "step s",
}  # fmt: skip
"""What the timeline has of each step."""
_SHOWN_STEPS = 40
_LISTED_TASKS = 60


# --- the list ------------------------------------------------------------------------------------------------------


def runs(desk: Desk, request: Request) -> View:
    """The list of runs, the newest first."""
    query, number = request.query_params, asked.page(request.query_params)
    status, text = query.get("status") or None, query.get("q", "")[:200] or None
    found = desk.pages.run_lines(limit=PAGE + 1, offset=number * PAGE, status=status, text=text)
    values = {
        "runs": found[:PAGE],
        "more": len(found) > PAGE,
        "number": number,
        "status": status or "",
        "text": text or "",
    }
    return "runs.html", values


# --- a run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a run's timeline."""

    step: int
    values: Mapping[str, float]
    evaluations: Sequence[EvaluationRecord] = ()


def run(desk: Desk, request: Request) -> View:
    """A run: where it is, its curves, its timeline."""
    record = known_run(desk, request.path_params["run_id"])
    before = asked.whole(request.query_params, "before")
    evaluations = desk.evaluations(record.id)
    live = desk.pages.live(record.id)
    now = next((one for one in live if not one.episode_id), None)
    under_way = int(now.data.get("step") or 0) if now and before is None else 0
    shares = desk.pages.shares(record.id, purpose_of(record))
    values = {
        "run": record,
        "live": now,
        "under_way": under_way,
        "silent": _silent(record, live),
        "running": [running(one) for one in live if one.episode_id][:24],
        "charts": charts(desk, record, evaluations, shares),
        "entries": _timeline(desk, record, evaluations, before, under_way),
        "columns": COLUMNS,
        "shown": _SHOWN_STEPS,
        "before": before,
        "tasks": tasks_of(shares)[:_LISTED_TASKS],
        "costs": costs_of(desk.pages, record, desk.prices, most=None if desk.still else MANY),
        "trackers": trackers(desk, record.id),
    }
    return "run.html", values


def known_run(desk: Desk, run_id: str) -> RunRecord:
    """A run. Raises Refusal."""
    found = desk.pages.runs_by_id([run_id])
    if not found:
        raise Refusal(f'there is no run "{run_id}" in the store', status=404)
    return found[0]


def purpose_of(record: RunRecord) -> Purpose:
    """What a run's own episodes are for."""
    return "train" if record.command == "train" else "eval" if record.command == "eval" else "rollout"


def tasks_of(shares: Sequence[TaskShare] | None) -> list[TaskShare]:
    """The tasks of all steps together, the worst first; none of a run that is too large."""
    found: dict[str, TaskShare] = {}
    for one in shares or ():
        known = found.get(one.task_id, TaskShare(0, one.task_id, 0, 0))
        found[one.task_id] = TaskShare(0, one.task_id, known.n + one.n, known.successes + one.successes)
    return sorted(found.values(), key=lambda one: (one.successes / one.n, one.task_id))


def trackers(desk: Desk, run_id: str) -> dict[str, str]:
    """Where trackers show the run, by their names: an address, a folder, or nothing; of each the newest."""
    found = desk.pages.events(run=run_id, kind="tracker")
    return {str(one.data.get("name", "")): str(one.data.get("url") or "") for one in found}


def _silent(record: RunRecord, live: Sequence[LiveRecord]) -> float | None:
    """Seconds since the last sign of life of a run that says it is running, if they are many."""
    if record.status != "running":
        return None
    last = max([record.heartbeat_at or record.started_at, *(one.at for one in live)])
    since = time.time() - last
    return since if since > SILENT_S else None


def _timeline(
    desk: Desk, record: RunRecord, evaluations: Sequence[EvaluationRecord], before: int | None, under_way: int
) -> list[Entry]:
    rows = desk.pages.at_steps(record.id, list(COLUMNS), before=before, limit=_SHOWN_STEPS)
    measured: dict[int, list[EvaluationRecord]] = defaultdict(list)
    for one in evaluations:
        if before is None or one.step < before:
            measured[one.step].append(one)
    lowest = min(rows) if len(rows) == _SHOWN_STEPS else -1
    steps = {*rows, *(step for step in measured if step >= lowest)}
    if under_way and record.command == "train":  # it has no metrics before it is over
        steps.add(under_way)
    return [Entry(step, rows.get(step, {}), measured.get(step, ())) for step in sorted(steps, reverse=True)]


def costs(desk: Desk, request: Request) -> View:
    """A run's ledger by itself, however many episodes it has; made when somebody asks for it."""
    record = known_run(desk, request.path_params["run_id"])
    return "costs.html", {"run": record, "costs": costs_of(desk.pages, record, desk.prices)}


# --- curves --------------------------------------------------------------------------------------------------------


_TIMES = {"time/rollout_s": "rollout", "time/train_s": "train", "time/eval_s": "eval", "time/save_s": "save"}
_KL = {"policy/kl_sampler": "sampler", "policy/kl_ref": "reference"}
_STALE = {"async/staleness_mean": "mean", "async/staleness_max": "largest", "policy/lag_mean": "lag of the policy"}
_SIGNAL = {"group/frac_mixed": "mixed", "group/frac_all_pass": "all pass", "group/frac_all_fail": "all fail"}
_TOKENS = {"tokens/sampled_mean": "sampled a turn", "episode/steps_mean": "turns an episode"}


def charts(
    desk: Desk, record: RunRecord, evaluations: Sequence[EvaluationRecord], shares: Sequence[TaskShare] | None
) -> list[Chart]:
    """The curves of a run, those that have something to show."""
    names = desk.pages.metric_names(record.id)
    stops = {n: n.removeprefix("stop/") for n in names if n.startswith("stop/")}
    failures = {n: n.removeprefix("failure/") for n in names if n.startswith("failure/")}
    plain = [
        "episode/success_rate",
        "reward/mean",
        "episode/failed_rate",
        "policy/entropy",
        "policy/loss",
        "sft/nll",
        "tokens/total",
    ]
    series = desk.pages.series(record.id, [*plain, *_TIMES, *_KL, *_STALE, *_SIGNAL, *_TOKENS, *stops, *failures])

    def of(named: Mapping[str, str]) -> dict[str, list[tuple[int, float]]]:
        return {words: series[name] for name, words in named.items() if name in series}

    stale = {words: points for words, points in of(_STALE).items() if any(value for _, value in points)}
    found = [
        _success(desk, series, evaluations, shares),
        chart("Reward", of({"reward/mean": "mean"}), about="mean reward of the scored episodes of a step"),
        chart("Signal", of(_SIGNAL), share=True,
            about="groups whose rewards differ teach; those that are all equal don't"),
        chart("Why episodes ended", of(stops), share=True, about="share of episodes by stop reason"),
        chart("Failures", of({"episode/failed_rate": "all", **failures}), share=True,
            about="lost to infrastructure, by boundary"),
        chart("KL divergence", of(_KL), about="in nats: of the sampler's, and of the reference's distribution"),
        chart("Entropy", of({"policy/entropy": "entropy"}), about="of the policy at the trained tokens, nats"),
        chart("Loss", of({"policy/loss": "policy", "sft/nll": "nll"}), about="what was minimised"),
        chart("Staleness", stale, about="steps between sampling and training"),
        chart("Time by phase", of(_TIMES), about="seconds of a step"),
        chart("Lengths", of(_TOKENS), about="means of the step"),
        chart("Tokens", of({"tokens/total": "tokens"}), about="prompt and sampled tokens of the step"),
    ]  # fmt: skip
    return [one for one in found if one is not None]


def _success(
    desk: Desk,
    series: Mapping[str, Any],
    evaluations: Sequence[EvaluationRecord],
    shares: Sequence[TaskShare] | None,
) -> Chart | None:
    lines: dict[str, list[tuple[int, float]]] = {}
    bands: dict[str, list[tuple[int, float, float]]] = {}
    for one in evaluations:
        rate = one.metrics.get("success_rate")
        if rate is not None:
            name = f"evaluation: {one.suite}"
            lines.setdefault(name, []).append((one.step, rate))
            bands.setdefault(name, []).append(
                (one.step, one.metrics.get("ci_low", rate), one.metrics.get("ci_high", rate))
            )
    if "episode/success_rate" in series:
        found = rates(desk, shares)
        told = series["episode/success_rate"]  # of steps that are over: of the next some episodes may be stored already
        lines["training"] = [(n, found[n].value if n in found else value) for n, value in told]
        bands["training"] = [(n, found[n].low, found[n].high) for n, _ in told if n in found]
    about = "share of successes with 95 % intervals, clustered by task"
    return chart("Success", lines, bands=bands, share=True, about=about)


def rates(desk: Desk, shares: Sequence[TaskShare] | None) -> dict[int, Interval]:
    """Shares of successes by step."""
    by_step: dict[int, dict[str, list[float]]] = defaultdict(dict)
    for share in shares or ():
        by_step[share.step][share.task_id] = [1.0] * share.successes + [0.0] * (share.n - share.successes)
    return {step: desk.statistics.rate(outcomes) for step, outcomes in by_step.items()}


# --- a step --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupLine:
    """Attempts at one instance."""

    id: str
    episodes: Sequence[EpisodeLine]
    running: Sequence[Running] = ()

    @property
    def flat(self) -> bool:
        """Whether all rewards are equal, so that nothing is learnt from it."""
        rewards = [e.reward for e in self.episodes if e.reward is not None]
        return len(rewards) > 1 and len(set(rewards)) == 1 and not self.running


def step(desk: Desk, request: Request) -> View:
    """A step of a run: its groups with their episodes."""
    record = known_run(desk, request.path_params["run_id"])
    number = asked.whole(request.path_params, "step") or 0
    page = asked.page(request.query_params)
    limit = 8 * PAGE
    lines = desk.pages.episode_lines(
        {"run": record.id, "purpose": purpose_of(record), "step": number},
        limit=limit + 1,
        offset=page * limit,
    )
    following = desk.pages.live(record.id)
    live = [running(one) for one in following if one.episode_id and one.data.get("step") == number]
    newest = max([record.step, *(int(one.data.get("step") or 0) for one in following)])
    groups = _groups(lines[:limit], [one for one in live if one.purpose != "eval"])
    evaluations = [one for one in desk.evaluations(record.id) if one.step == number]
    values = {
        "run": record,
        "step": number,
        "groups": groups,
        "values": desk.pages.values(record.id, number),
        "evaluations": evaluations,
        "page": page,
        "more": len(lines) > limit,
        "columns": COLUMNS,
        "newest": newest,
    }
    return "step.html", values


def _groups(lines: Sequence[EpisodeLine], live: Sequence[Running]) -> list[GroupLine]:
    done: dict[str, list[EpisodeLine]] = defaultdict(list)
    going: dict[str, list[Running]] = defaultdict(list)
    for line in lines:
        done[line.group_id or line.id].append(line)
    for one in live:
        if one.id not in {line.id for line in done[one.group_id]}:
            going[one.group_id].append(one)
    return [
        GroupLine(i, sorted(done[i], key=lambda e: e.attempt), sorted(going[i], key=lambda e: e.attempt))
        for i in sorted({*(i for i in done if done[i]), *going})
    ]
