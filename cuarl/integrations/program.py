"""``ProgramEnv``: an agent program of one's own that plays an episode, with a model that cuarl serves.

The usual loop of an episode drives it. What is recorded of a turn is what the model was shown and what it answered;
what the program made of it is the program's affair, and so are its environment and its prompts. It tells the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio

from cuarl.agent.base import Decision
from cuarl.agent.relay import RelayAgent
from cuarl.env.base import Capabilities
from cuarl.env.gym.follow import Conversation
from cuarl.env.leases import Ledger
from cuarl.env.program.process import Program
from cuarl.env.program.verdict import HINT, Told, read_told
from cuarl.errors import ConfigError, EnvError
from cuarl.policy.sampler import Sampler, SamplingParams
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Trajectory, Turn, Verdict
from cuarl.types import Action, Observation, Screenshot, StepResult


class Session(Conversation, Protocol):
    """A conversation that its client may end by itself, and what it needs to speak."""

    @property
    def key(self) -> str:
        """API key that the client sends."""
        ...

    def ended(self) -> Trajectory | None:
        """The record as the client ended it; None while it has not."""
        ...


Talk = Callable[[Sampler, SamplingParams, int], Session]
"""Begins a session with a sampler, which always samples so, its draws decided by a seed."""


class ProgramEnv:
    """One run of ``command``. ``talk`` begins a session with a served model."""

    def __init__(self, command: Sequence[str], ledger: Ledger, talk: Talk) -> None:
        self._command, self._ledger, self._talk = tuple(command), ledger, talk
        self._session: Session | None = None
        self._program: Program | None = None
        self._status: int | None = None
        self._next: Turn | None = None
        self._shown: Screenshot | None = None
        self._asked = 0

    @property
    def capabilities(self) -> Capabilities:
        """None: no action of cuarl's reaches the program."""
        return Capabilities(frozenset(), kind="desktop")

    def follow(self, sampler: Sampler, params: SamplingParams, sampling_seed: int) -> RelayAgent:
        """Have the program ask ``sampler``; the agent that tells what was answered. To be called before ``reset``."""
        self._session = self._talk(sampler, params, sampling_seed)
        return RelayAgent("program", self._decision)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Start the program, and wait until it was answered once.

        Raises ConfigError for scripted agents, and EnvError for a program that ends before.
        """
        session = self._session
        if session is None:
            raise ConfigError(
                "an agent program asks a policy, and is no place for a scripted agent",
                where="--env program",
                hint="--agent policy",
            )
        told = _environment(task, seed, await session.open(), session)
        self._program = await Program.start(self._ledger, self._command, told)
        self._next = await self._turn(0)
        if self._next is None:
            raise EnvError(f"the agent program ended without asking its model{self._ending()}", where=self._command[0])
        self._shown = session.pictures(self._next)[self._next.screenshot.digest]
        return Observation(self._shown)

    async def _decision(self, history: Sequence[Turn]) -> Decision:
        session, turn = self._session, self._next
        assert session is not None and turn is not None, "the episode is over"
        return Decision(acted=True, sampled=turn.sampled, warnings=turn.warnings, pictures=session.pictures(turn))

    async def look(self) -> StepResult:
        """Wait for the program's next question, or its end, and show what the model was shown."""
        session, before = self._session, self._shown
        assert session is not None and before is not None
        self._asked += 1
        self._next = await self._turn(self._asked)
        if self._next is None:
            told = self._told()
            reward = None if told is None else told.reward
            info = {"exit_status": self._status}
            return StepResult(Observation(before), reward=reward, terminated=True, info=info)
        self._shown = session.pictures(self._next)[self._next.screenshot.digest]
        return StepResult(Observation(self._shown))

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        """What the program told; not done if it was stopped, by a limit, before it did. Raises EnvError."""
        told = self._told()
        if told is not None:
            return told.verdict()
        if self._status is None:
            return Verdict(success=False, score=0.0)
        raise EnvError(f"the agent program told no verdict{self._ending()}", where=self._command[0], hint=HINT)

    async def step(self, action: Action) -> StepResult:
        """Nothing: the program acts by itself."""
        assert self._shown is not None
        return StepResult(Observation(self._shown), info={"rejected": "the agent program acts by itself"})

    async def state(self) -> dict[str, object]:
        """Nothing: the program keeps it to itself, and judges by it."""
        return {}

    async def close(self) -> None:
        """End the program and its session."""
        program, self._program = self._program, None
        session, self._session = self._session, None
        try:
            if program is not None:
                await program.end()
        finally:
            if session is not None:
                await session.close()

    async def _turn(self, index: int) -> Turn | None:
        """The model's turn of that index; None if the program is over without it."""
        session, program = self._session, self._program
        assert session is not None and program is not None
        found: list[Turn] = []
        async with anyio.create_task_group() as either:

            async def answered() -> None:
                found.append(await session.turn(index))
                either.cancel_scope.cancel()

            async def over() -> None:
                self._status = await program.wait()
                either.cancel_scope.cancel()

            if self._status is None:
                either.start_soon(over)
                either.start_soon(answered)
        if not found:
            with anyio.move_on_after(0):  # answered just before the end
                found.append(await session.turn(index))
        return found[0] if found else None

    def _told(self) -> Told | None:
        """The verdict: the session's end if the program has sent one, else its last line."""
        assert self._session is not None and self._program is not None
        ended = self._session.ended()
        if ended is not None and ended.verdict is not None:
            verdict = ended.verdict
            return Told(success=verdict.success, score=verdict.score, reward=ended.reward)
        return None if self._status is None else read_told(self._program.last_line())

    def _ending(self) -> str:
        assert self._program is not None
        words = self._program.last_words()
        return f": exit status {self._status}{f', saying at last: {words}' if words else ''}"


def _environment(task: TaskInstance, seed: int, base_url: str, session: Session) -> dict[str, str]:
    """What the program finds in its environment."""
    fields = {"task_id", "goal", "category", "difficulty", "max_steps", "params", "preset", "tags"}
    return {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": session.key,
        "CUARL_MODEL": session.model,
        "CUARL_GOAL": task.goal,
        "CUARL_TASK": json.dumps(task.model_dump(mode="json", include=fields), sort_keys=True),
        "CUARL_SEED": str(seed),
        "CUARL_END_URL": f"{base_url.removesuffix('/v1')}/end",
    }
