"""What an evaluation says: one small outcome an episode, and the summaries of any set of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from pydantic import NonNegativeInt

from cuarl.errors import ConfigError
from cuarl.evaluate import stats
from cuarl.trajectory import Trajectory
from cuarl.types import Record, StopReason


class Outcome(Record):
    """One evaluated episode, as far as statistics need it."""

    episode_id: str
    task_id: str
    seed: int
    attempt: NonNegativeInt = 0
    category: str = ""
    difficulty: str = ""
    split: str = ""
    """What is new in the task against those that were trained on, where that is known: wording, object, kind or app."""
    about: Mapping[str, str] = {}
    """What else tells tasks apart, by name: of a pair of picture and instruction its kind, source and size."""
    success: bool | None
    """None where there is no verdict: the infrastructure failed, so the episode is in no rate."""
    false_completion: bool = False
    side_effects: bool = False
    steps: NonNegativeInt = 0
    stop: StopReason

    @classmethod
    def of(cls, trajectory: Trajectory) -> Outcome:
        """The outcome of an episode."""
        t, verdict = trajectory, trajectory.verdict
        return cls(
            episode_id=t.episode_id,
            task_id=t.task_id,
            seed=t.seed,
            attempt=t.attempt,
            category=t.category,
            difficulty=t.difficulty,
            success=t.success,
            false_completion=bool(verdict and verdict.false_completion),
            side_effects=bool(verdict and verdict.side_effects),
            steps=len(t.turns),
            stop=t.stop,
        )


class Summary(Record):
    """Rates over the episodes that have a verdict. They are None where there is no such episode."""

    n: int
    """Episodes with a verdict."""
    tasks: int
    failed: int = 0
    """Episodes without one."""
    success_rate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    """95 % interval of the success rate, clustered by task."""
    false_completion_rate: float | None = None
    """Share that ended with a claim of success which is not so."""
    side_effect_rate: float | None = None
    """Share that changed something nobody asked for."""
    steps_mean: float | None = None
    pass_at: Mapping[int, float] = {}
    """Unbiased pass@k by k: at least one of k attempts."""
    pass_hat: Mapping[int, float] = {}
    """pass^k by k: all of k attempts."""

    def metrics(self) -> dict[str, float]:
        """Flat, by the documented names, without what could not be computed."""
        rates = self.model_dump(exclude={"pass_at", "pass_hat"}, exclude_none=True)
        named = {f"pass@{k}": v for k, v in self.pass_at.items()} | {f"pass^{k}": v for k, v in self.pass_hat.items()}
        return {name: float(value) for name, value in (rates | named).items()}


def summarise(outcomes: Iterable[Outcome]) -> Summary:
    """Summary of any set of episodes."""
    outcomes = list(outcomes)
    judged = [o for o in outcomes if o.success is not None]
    failed = len(outcomes) - len(judged)
    if not judged:
        return Summary(n=0, tasks=0, failed=failed)
    by_task: dict[str, list[float]] = defaultdict(list)
    for o in judged:
        by_task[o.task_id].append(float(bool(o.success)))
    rate = stats.clustered_rate(by_task)
    at, hat = _repeated(judged)
    return Summary(
        n=rate.n,
        tasks=rate.tasks,
        failed=failed,
        success_rate=rate.value,
        ci_low=rate.low,
        ci_high=rate.high,
        false_completion_rate=_share(judged, lambda o: o.false_completion),
        side_effect_rate=_share(judged, lambda o: o.side_effects),
        steps_mean=sum(o.steps for o in judged) / len(judged),
        pass_at=at,
        pass_hat=hat,
    )


def breakdown(
    outcomes: Iterable[Outcome], by: Literal["category", "difficulty", "split", "task_id"]
) -> dict[str, Summary]:
    """A summary for each value of a field, in order of first appearance."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for o in outcomes:
        parts[getattr(o, by)].append(o)
    return {name: summarise(part) for name, part in parts.items()}


def by_about(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Summary]]:
    """Summaries by each thing that is told about tasks, and its values in order; empty where nothing is."""
    found: dict[str, dict[str, Summary]] = {}
    for name in dict.fromkeys(name for outcome in outcomes for name in outcome.about):
        values = sorted({outcome.about[name] for outcome in outcomes if name in outcome.about})
        found[name] = {
            value: summarise(outcome for outcome in outcomes if outcome.about.get(name) == value) for value in values
        }
    return found


def compare(a: Iterable[Outcome], b: Iterable[Outcome]) -> stats.Comparison:
    """B minus A in success, paired by task and seed. Raises ConfigError if they have no instance in common."""
    try:
        return stats.compare(_by_instance(a), _by_instance(b))
    except ValueError as e:
        raise ConfigError(f"can't compare: {e}", hint="evaluate both with the same --tasks and --seed") from e


def _by_instance(outcomes: Iterable[Outcome]) -> dict[tuple[str, int], list[float]]:
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for o in outcomes:
        if o.success is not None:
            found[o.task_id, o.seed].append(float(o.success))
    return found


def _repeated(judged: Sequence[Outcome]) -> tuple[dict[int, float], dict[int, float]]:
    """pass@k and pass^k for powers of two that every unit has enough attempts for.

    Attempts are those at one instance where instances were repeated, else all episodes of a task.
    """
    repeated = any(o.attempt > 0 for o in judged)
    units: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for o in judged:
        units[o.task_id, o.seed if repeated else 0].append(bool(o.success))
    counts = [(len(unit), sum(unit)) for unit in units.values()]
    most = min(n for n, _ in counts)
    ks = [k for k in (1, 2, 4, 8, 16, 32) if k <= most]
    at = {k: sum(stats.pass_at_k(n, c, k) for n, c in counts) / len(counts) for k in ks}
    hat = {k: sum(stats.pass_hat_k(n, c, k) for n, c in counts) / len(counts) for k in ks}
    return at, hat


def _share(judged: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> float:
    return sum(map(holds, judged)) / len(judged)
