"""Agents that ask a person: one that does only what the person does, and one that is a policy until it is corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import monotonic

from cuarl.agent.base import Agent, Decision
from cuarl.env.base import Env
from cuarl.human.session import LetIt, Question, Session, Skip
from cuarl.human.vocabulary import Words, offered, understand
from cuarl.rollout.spec import EpisodeSpec
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
from cuarl.types import Action, Observation

BY_PERSON = {"by": "human"}
"""What ``Decision.info`` says of an action that is a person's."""


class HumanAgent:
    """Does what a person does on the page of ``session``, said in a model's own words. For one episode."""

    def __init__(self, session: Session, spec: EpisodeSpec, env: Env, wording: Words) -> None:
        self.name = f"human:{wording.name}"
        self._asking = _Asking(session, spec, env, wording)

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """What the person does, or that this episode is not wanted."""
        self._asking.see(observation, history)
        return await self._asking.decide(self._asking.question(task, observation, history))


class AssistedAgent:
    """Does what ``policy`` decides unless the person takes a turn over. For one episode.

    What the policy would have done is noted beside the turn. ``wording`` must be that of the same model.
    """

    def __init__(self, policy: Agent, session: Session, spec: EpisodeSpec, env: Env, wording: Words) -> None:
        self.name = f"assisted:{policy.name}"
        self._policy, self._session = policy, session
        self._asking = _Asking(session, spec, env, wording)

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The policy's decision, or the person's in its place."""
        self._asking.see(observation, history)
        proposal = await self._policy.act(task, observation, history, seed)
        question = self._asking.question(task, observation, history, proposal)
        if proposal.too_long is not None:
            return proposal
        if not self._session.stepwise and not await self._session.taken_over(question):
            return proposal
        return await self._asking.decide(question)


class _Asking:
    """Puts the questions of one episode."""

    def __init__(self, session: Session, spec: EpisodeSpec, env: Env, wording: Words) -> None:
        self._session, self._spec, self._env, self._wording = session, spec, env, wording
        self._offers: frozenset[str] | None = None

    def see(self, observation: Observation, history: Sequence[Turn]) -> None:
        self._wording.see(observation, history)
        if self._offers is None:
            self._offers = offered(self._wording, self._env.capabilities.actions)

    def question(
        self, task: TaskInstance, observation: Observation, history: Sequence[Turn], proposal: Decision | None = None
    ) -> Question:
        capabilities = self._env.capabilities
        return Question(
            spec=self._spec,
            task=task,
            observation=observation,
            turns=tuple(history),
            understand=partial(understand, self._wording, capabilities.actions),
            offers=self._offers or frozenset(),
            kind=capabilities.kind,
            proposal=proposal,
        )

    async def decide(self, question: Question) -> Decision:
        asked = monotonic()
        reply = await self._session.ask(question)
        if isinstance(reply, Skip):
            return Decision(skipped=True)
        if isinstance(reply, LetIt):
            assert question.proposal is not None
            return question.proposal
        return self._of_person(question, reply, monotonic() - asked)

    def _of_person(self, question: Question, action: Action, took_s: float) -> Decision:
        decision = self._wording.decision(question.task, question.turns, action)
        info: dict[str, str | float] = {**BY_PERSON, "person_s": round(took_s, 1)}
        if question.proposal is not None:
            info["instead_of"] = question.proposal.sampled.text if question.proposal.sampled else ""
        return replace(decision, info=info)
