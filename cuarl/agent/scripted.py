"""Agents without a model: for baselines, proofs that tasks can be solved, demonstrations and replays."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from cuarl.agent.base import Agent, Decision
from cuarl.agent.demonstration_points import Box, within
from cuarl.agent.formats import Size
from cuarl.agent.wording import Wording
from cuarl.env.base import AskedOracleEnv, Env, OracleEnv
from cuarl.errors import AgentError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
from cuarl.types import (
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    Observation,
    OpenApp,
    Screenshot,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)


class OracleAgent:
    """Does what the environment knows to be right; needs one that tells."""

    name = "oracle"

    def __init__(self, env: Env) -> None:
        if not isinstance(env, OracleEnv | AskedOracleEnv) or not env.capabilities.oracle:
            raise AgentError("this environment does not know how its tasks are solved", hint="--agent nothing")
        self._next = env.ask_oracle if isinstance(env, AskedOracleEnv) else _told(env)

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The next action of a solution."""
        return Decision(action=await self._next())


def _told(env: OracleEnv) -> Callable[[], Awaitable[Action]]:
    async def tell() -> Action:
        return env.oracle_action()

    return tell


class DoNothingAgent:
    """Gives up at once, claiming no success: whatever it scores is not earned."""

    name = "do-nothing"

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Finish."""
        return Decision(action=Finish(success=False))


class RandomAgent:
    """Any action that the environment can carry out, at any point, typing words of the goal. Never finishes."""

    name = "random"

    def __init__(self, actions: frozenset[str]) -> None:
        self._kinds = tuple(k for k in _DRAWS if k in actions)
        if not self._kinds:
            raise AgentError(
                f"no action to draw from: the environment can do {', '.join(sorted(actions)) or 'nothing'}"
            )

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """Draw by ``seed`` alone: first a kind of action, each as likely, then its details."""
        rng = random.Random(seed)
        screen = observation.screenshot
        draw = _DRAWS[rng.choice(self._kinds)]
        return Decision(action=draw(rng, (rng.randrange(screen.width), rng.randrange(screen.height)), screen, task))


_Draw = Callable[[random.Random, tuple[int, int], Screenshot, TaskInstance], Action]


def _swipe(rng: random.Random, at: tuple[int, int], screen: Screenshot, task: TaskInstance) -> Action:
    return Swipe(x=at[0], y=at[1], x2=rng.randrange(screen.width), y2=rng.randrange(screen.height))


def _drag(rng: random.Random, at: tuple[int, int], screen: Screenshot, task: TaskInstance) -> Action:
    return Drag(path=(at, (rng.randrange(screen.width), rng.randrange(screen.height))))


def _scroll(rng: random.Random, at: tuple[int, int], screen: Screenshot, task: TaskInstance) -> Action:
    return Scroll(x=at[0], y=at[1], direction=rng.choice(("up", "down", "left", "right")))


def _button(rng: random.Random, at: tuple[int, int], screen: Screenshot, task: TaskInstance) -> Action:
    return Button(name=rng.choice(("back", "home", "recents")))


def _word(rng: random.Random, task: TaskInstance) -> str:
    return rng.choice(task.goal.split() or ["a"])


_DRAWS: dict[str, _Draw] = {
    "click": lambda rng, at, screen, task: Click(x=at[0], y=at[1]),
    "long_press": lambda rng, at, screen, task: LongPress(x=at[0], y=at[1]),
    "move": lambda rng, at, screen, task: Move(x=at[0], y=at[1]),
    "swipe": _swipe,
    "drag": _drag,
    "scroll": _scroll,
    "type": lambda rng, at, screen, task: TypeText(text=_word(rng, task), submit=rng.random() < 0.5),
    "key": lambda rng, at, screen, task: Key(keys=(rng.choice(("Return", "Escape", "Tab", "BackSpace")),)),
    "button": _button,
    "open_app": lambda rng, at, screen, task: OpenApp(name=_word(rng, task)),
    "wait": lambda rng, at, screen, task: Wait(),
    "answer": lambda rng, at, screen, task: Answer(text=_word(rng, task)),
}


Around = Callable[[int, int], Awaitable[Box | None]]
"""The box around a point within which pointing does the same; None if that is not known."""


class DemonstratingAgent:
    """Says what ``teacher`` does in a model's own words, so that its episodes can be learnt from.

    Its records carry token ids and no logprobs: nothing was sampled. Where the environment tells what lies ``around`` a
    point, taps are spread over it.
    """

    def __init__(self, teacher: Agent, wording: Wording, *, around: Around | None = None) -> None:
        self.name = f"{teacher.name}:{wording.format.name}"
        self._teacher, self._wording, self._around = teacher, wording, around

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The teacher's action, and the answer that calls for it. Raises ``AgentError`` if the format can't say it."""
        action = await self.intends(task, observation, history, seed)
        return Decision() if action is None else self.says(task, history, action)

    async def intends(
        self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int
    ) -> Action | None:
        """The teacher's action, None if it has none. Once a turn, before anything is said of it."""
        self._wording.see(observation, history)
        decision = await self._teacher.act(task, observation, history, seed)
        if decision.action is None:
            return None
        screen = Size(observation.screenshot.width, observation.screenshot.height)
        return await self._aimed(decision.action, screen, seed)

    def words(self, action: Action) -> str:
        """The answer that calls for ``action`` on the present screen. Raises ``AgentError`` if there is none."""
        return self._wording.understood(action)[0]

    def says(self, task: TaskInstance, history: Sequence[Turn], action: Action) -> Decision:
        """The decision to do ``action`` on the present screen. Raises ``AgentError`` if the format can't say it."""
        return self._wording.decision(task, history, action)

    async def _aimed(self, action: Action, screen: Size, seed: int) -> Action:
        """``action`` somewhere on what it is aimed at."""
        if self._around is None or not isinstance(action, Click | LongPress):
            return action
        box = await self._around(action.x, action.y)
        return within(action, box, screen, random.Random(seed)) if box else action
