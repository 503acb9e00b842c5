"""A policy with an oracle beside it, which acts in some turns and says of all others what it would have done.

So the oracle's answers are known in the states that the policy itself gets into (DAgger, arXiv:1011.0686).
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
from cuarl.types import Action, Finish, Observation


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
        label = self._words(wanted)
        chosen = random.Random(f"oracle/{seed}").random() < self._share
        if wanted is not None and label and chosen:
            self._policy.see(observation, history)
            return self._by_oracle(task, history, wanted)
        said = await self._policy.act(task, observation, history, seed)
        if not label or wanted is None or said.too_long is not None:
            return said
        if isinstance(said.action, Finish) and not isinstance(wanted, Finish):
            instead = said.sampled.text if said.sampled else ""
            overruled = self._by_oracle(task, history, wanted)
            return replace(overruled, info={**overruled.info, "instead_of": instead})
        return replace(said, info={BY: "policy", LABEL: label})

    def _by_oracle(self, task: TaskInstance, history: Sequence[Turn], action: Action) -> Decision:
        return replace(self._oracle.says(task, history, action), info={BY: BY_ORACLE})

    def _words(self, action: Action | None) -> str:
        """What the oracle would say; nothing where it is at a loss, or the format has no words."""
        if action is None or (isinstance(action, Finish) and action.success is False):
            return ""
        try:
            return self._oracle.words(action)
        except AgentError:
            return ""
