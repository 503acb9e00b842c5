"""A policy with an oracle beside it: one that acts now and then and labels all other turns, or one that leads the way.

With labels the oracle's answers are known in the states that the policy itself gets into (DAgger, arXiv:1011.0686).
Led, the policy begins where an oracle has brought it, so that it meets a success where it would find none by itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from cuarl.agent.base import Decision
from cuarl.agent.model import ModelAgent
from cuarl.agent.scripted import DemonstratingAgent
from cuarl.errors import AgentError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import BY, BY_ORACLE, LABEL, Turn
from cuarl.types import Action, Answer, Finish, Observation


class GuidedAgent:
    """Does what ``policy`` decides, unless it is ``oracle``'s turn. For one episode.

    The oracle has a turn with probability ``share``. Of the policy's turns it notes what it would have said, in
    ``Decision.info``. A policy that ends the episode too early is overruled: nothing is learnt of one that is over.
    """

    def __init__(self, policy: ModelAgent, oracle: DemonstratingAgent, *, share: float = 0.0) -> None:
        self.name = f"guided:{policy.name}"
        self._policy, self._oracle, self._share = policy, oracle, share

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The policy's decision, or the oracle's in its place."""
        wanted = await self._oracle.intends(task, observation, history, seed)
        label = _words(self._oracle, wanted)
        chosen = random.Random(f"oracle/{seed}").random() < self._share
        if wanted is not None and label and chosen:
            self._policy.see(observation, history)
            return _by_oracle(self._oracle, task, history, wanted)
        said = await self._policy.act(task, observation, history, seed)
        if not label or wanted is None or said.too_long is not None:
            return said
        if isinstance(said.action, Finish) and not isinstance(wanted, Finish):
            instead = said.sampled.text if said.sampled else ""
            overruled = _by_oracle(self._oracle, task, history, wanted)
            return replace(overruled, info={**overruled.info, "instead_of": instead})
        return replace(said, info={BY: "policy", LABEL: label})


class LedAgent:
    """Does what ``oracle`` would in the first ``turns`` turns, and what ``policy`` decides from there on.

    For one episode. What is left for the policy is at least to say what it has found, and that it is done: where the
    oracle would, or is at a loss, its lead is over.
    """

    def __init__(self, policy: ModelAgent, oracle: DemonstratingAgent, *, turns: int) -> None:
        self.name = f"led:{policy.name}"
        self._policy, self._oracle, self._turns = policy, oracle, turns

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The oracle's decision as long as it leads, else the policy's."""
        if len(history) < self._turns:
            wanted = await self._oracle.intends(task, observation, history, seed)
            if wanted is not None and not isinstance(wanted, Finish | Answer) and _words(self._oracle, wanted):
                self._policy.see(observation, history)
                return _by_oracle(self._oracle, task, history, wanted)
            self._turns = 0
        return await self._policy.act(task, observation, history, seed)


def _by_oracle(oracle: DemonstratingAgent, task: TaskInstance, history: Sequence[Turn], action: Action) -> Decision:
    return replace(oracle.says(task, history, action), info={BY: BY_ORACLE})


def _words(oracle: DemonstratingAgent, action: Action | None) -> str:
    """What the oracle would say; nothing where it is at a loss, or the format has no words."""
    if action is None or (isinstance(action, Finish) and action.success is False):
        return ""
    try:
        return oracle.words(action)
    except AgentError:
        return ""
