"""How far a judge model agrees with the verdicts of a run's stored episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from cuarl import strict_json
from cuarl.errors import RewardError
from cuarl.evaluate.stats import wilson
from cuarl.rollout.opinion import INFO, JudgeModel, Opinion, Seen
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Trajectory
from cuarl.types import Record, Screenshot
from cuarl.workflow.watcher import Note

KEPT = "judge.jsonl"
"""File of a run with the opinions on its episodes: what was asked before is not asked again."""


class Agreement(Record):
    """Counts by what the checks say and what the judge says."""

    done_done: int = 0
    done_not: int = 0
    not_done: int = 0
    """By the checks not done, by the judge done: what would be rewarded wrongly."""
    not_not: int = 0
    unanswered: int = 0
    """Episodes on which the judge gave no opinion."""
    tokens_in: int = 0
    tokens_out: int = 0
    """Of what was asked now."""

    @property
    def n(self) -> int:
        """Episodes with both verdicts."""
        return self.done_done + self.done_not + self.not_done + self.not_not

    @property
    def share(self) -> float:
        """Share of them in which both say the same."""
        return (self.done_done + self.not_not) / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of ``share``."""
        return wilson(self.share, self.n) if self.n else (0.0, 1.0)

    @property
    def kappa(self) -> float:
        """Cohen's kappa (1960): agreement beyond what the two would reach by chance; 1 is full, 0 is none."""
        n, done, said = self.n, self.done_done + self.done_not, self.done_done + self.not_done
        if not n:
            return 0.0
        chance = (done * said + (n - done) * (n - said)) / n**2
        return 1.0 if chance == 1 else (self.share - chance) / (1 - chance)


class Kept:
    """The opinions in a run's file, by the digest of what was asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = [Opinion.model_validate_json(line) for line in lines]
        self._by_key = {one.key: one for one in found}

    def get(self, key: str) -> Opinion | None:
        """What was said of it before."""
        return self._by_key.get(key)

    def put(self, opinion: Opinion) -> None:
        """Keep an opinion, in memory and in the file."""
        self._by_key[opinion.key] = opinion
        with self._path.open("a", encoding="utf-8") as file:
            file.write(strict_json.dumps(opinion.model_dump(mode="json")) + "\n")


def checked(trajectory: Trajectory) -> bool:
    """Whether it has a verdict of its own, by checks or by its environment, that a judge can be held against."""
    verdict = trajectory.verdict
    return verdict is not None and trajectory.failure is None and [c.path for c in verdict.checks] != [INFO]


async def compared(
    episodes: Sequence[Trajectory],
    picture: Callable[[str], Screenshot],
    judge: JudgeModel,
    kept: Kept,
    *,
    at_once: int = 8,
    note: Note,
) -> Agreement:
    """Ask the judge about each of ``episodes``, at most ``at_once`` at a time, count, and close it.

    ``picture`` gives a stored screenshot by its digest. Raises RewardError if the judge answers about none of them.
    """
    counts = dict.fromkeys(Agreement.model_fields, 0)
    limit, errors = anyio.CapacityLimiter(at_once), list[RewardError]()

    async def ask(trajectory: Trajectory) -> None:
        async with limit:
            seen = _seen(trajectory, picture, judge.screens)
            opinion = kept.get(judge.key(seen))
            if opinion is None:
                try:
                    opinion = await judge(seen)
                except RewardError as error:
                    errors.append(error)
                    counts["unanswered"] += 1
                    return
                kept.put(opinion)
                counts["tokens_in"] += opinion.tokens_in
                counts["tokens_out"] += opinion.tokens_out
            assert trajectory.verdict is not None
            words = {True: "done", False: "not"}
            counts[f"{words[trajectory.verdict.success]}_{words[opinion.success]}"] += 1

    try:
        async with anyio.create_task_group() as group:
            for trajectory in episodes:
                group.start_soon(ask, trajectory)
    finally:
        await judge.close()
    if errors and len(errors) == len(episodes):
        raise errors[0]
    if errors:
        note(f"the judge gave no opinion on {len(errors)} episodes, the first time because: {errors[0]}")
    return Agreement(**counts)


def _seen(trajectory: Trajectory, picture: Callable[[str], Screenshot], screens: int) -> Seen:
    task = TaskInstance(task_id=trajectory.task_id, goal=trajectory.goal, env=trajectory.env)
    refs = [turn.screenshot for turn in trajectory.turns]
    refs += [trajectory.final_screenshot] if trajectory.final_screenshot else []
    wanted: dict[str, Screenshot] = {}
    for ref in reversed(refs):
        if len(wanted) < screens and ref.digest not in wanted:
            wanted[ref.digest] = picture(ref.digest)
    return Seen(task, trajectory.turns, trajectory.final_screenshot, trajectory.answer, wanted)
