"""What an episode of somebody else's environment has come to, and the verdict on it.

The state is what tasks' checks read: ``return`` (sum of the rewards), ``reward`` (the last one), ``steps``,
``terminated``, ``truncated`` and ``info.…``, what the environment told beside the last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cuarl.errors import RewardError
from cuarl.tasks.check import verdict
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import CheckResult, Verdict

RETURN = "return"


@dataclass(slots=True)
class Counters:
    """Counts up as the episode goes on."""

    steps: int = 0
    reward: float | None = None
    total: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)

    def add(self, reward: float | None, *, terminated: bool, truncated: bool, info: Mapping[str, Any]) -> None:
        """Count a step."""
        self.steps += 1
        self.reward, self.total = reward, self.total + (reward or 0.0)
        self.terminated, self.truncated, self.info = terminated, truncated, info

    @property
    def over(self) -> bool:
        """Whether the environment has ended the episode."""
        return self.terminated or self.truncated

    def state(self) -> dict[str, Any]:
        """What checks read."""
        return {
            RETURN: self.total,
            "reward": self.reward,
            "steps": self.steps,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "info": dict(self.info),
        }

    def verdict(self, task: TaskInstance, answer: str | None, claimed: bool | None) -> Verdict:
        """The verdict by the task's checks, with the sum of the rewards on record.

        Raises RewardError if one can't be read.

        A check of ``info`` that the environment never told has failed: many tell such a thing at the end only.
        """
        state = self.state()
        try:
            judged = verdict(task, state, state, answer, claimed)
        except RewardError:
            told = _with_missing(state, task)
            if told == state:
                raise
            judged = verdict(task, told, told, answer, claimed)
        if any(check.path == RETURN for check in judged.checks):
            return judged
        told_return = CheckResult(path=RETURN, op="told", actual=self.total, passed=True)
        return judged.model_copy(update={"checks": (*judged.checks, told_return)})


def _with_missing(state: Mapping[str, Any], task: TaskInstance) -> dict[str, Any]:
    """The state with None for each ``info.KEY`` that a check reads and the environment did not tell."""
    info = dict(state["info"])
    for check in task.checks:
        first, _, rest = check.path.partition(".")
        if first == "info" and rest and "." not in rest:
            info.setdefault(rest, None)
    return {**state, "info": info}
