"""Agents without a model: for baselines, proofs that tasks can be solved, demonstrations and replays."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence

from cuarl.agent.base import Agent, Decision
from cuarl.agent.demonstration_points import Box, stepped, within
from cuarl.agent.formats import Format, Size, saw
from cuarl.agent.formats.gestures import scrolled
from cuarl.agent.formats.points import RELATIVE
from cuarl.agent.history import History
from cuarl.agent.model import shrunk
from cuarl.agent.notes import note
from cuarl.agent.prompt import Window
from cuarl.env.base import AskedOracleEnv, Env, OracleEnv
from cuarl.errors import AgentError
from cuarl.policy.sampler import Message, PromptTooLong
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
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


Write = Callable[[tuple[Message, ...], str, int | None], Sampled | PromptTooLong]
"""Makes a record of a prompt, of so many tokens at most, and a given answer, tokenised as if sampled
(``TransformersPolicy.written``)."""
Resize = Callable[[int, int], tuple[int, int] | None]
"""The size at which a model sees a picture of a width and a height; None if that is not known."""


Around = Callable[[int, int], Awaitable[Box | None]]
"""The box around a point within which pointing does the same; None if that is not known."""


class DemonstratingAgent:
    """Says what ``teacher`` does in a model's own words, so that its episodes can be learnt from.

    Its records carry token ids and no logprobs: nothing was sampled. ``resize`` is the model's own; None means the
    usual one of its family. ``step``: the model names points in thousandths of the screen, and multiples of this only.
    Where the environment tells what lies around a point, taps are spread over it.
    """

    def __init__(
        self,
        teacher: Agent,
        format: Format,
        write: Write,
        *,
        window: Window | None = None,
        resize: Resize | None = None,
        step: int | None = None,
        around: Around | None = None,
    ) -> None:
        self.name = f"{teacher.name}:{format.name}"
        self._step, self._around = step, around
        self._teacher, self._format, self._write = teacher, format, write
        self._history, self._resize = History(window or format.window), resize

    async def act(self, task: TaskInstance, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        """The teacher's action, and the answer that calls for it. Raises ``AgentError`` if the format can't say it."""
        screen = observation.screenshot
        size = Size(screen.width, screen.height)
        sent = self._format.sent(size)
        shown = shrunk(screen, sent)
        self._history.see(shown, note(observation, history) if self._format.notes else "")
        decision = await self._teacher.act(task, observation, history, seed)
        if decision.action is None:
            return decision
        told = self._resize(*sent) if self._resize else None
        resized = saw(self._format, size, Size(*told) if told else None)
        text = self._words(await self._aimed(decision.action, size, seed), size, resized)
        sampled = self._recorded(task, history, self._format.told(resized), text)
        if isinstance(sampled, PromptTooLong):
            return Decision(too_long=sampled)
        # what is recorded is what the words mean, so that replays and checks agree with what is learnt
        said = self._format.parse(text, size, resized=resized)
        return Decision(
            action=said.action,
            warnings=said.warnings,
            resized=resized,
            pictures={} if shown is screen else {shown.digest: shown},
            sampled=sampled,
        )

    def _recorded(self, task: TaskInstance, turns: Sequence[Turn], system: str, text: str) -> Sampled | PromptTooLong:
        """``text`` as the answer to the widest prompt that fits."""
        for messages in self._history.prompts(task, turns, system=system):
            written = self._write(messages, text, self._history.window.max_prompt_tokens)
            if not isinstance(written, PromptTooLong):
                return written
            refused = written
        return self._history.checked(refused, task)

    async def _aimed(self, action: Action, screen: Size, seed: int) -> Action:
        """``action`` somewhere on what it is aimed at."""
        if self._around is None or not isinstance(action, Click | LongPress):
            return action
        box = await self._around(action.x, action.y)
        return within(action, box, screen, random.Random(seed)) if box else action

    def _words(self, action: Action, screen: Size, resized: Size) -> str:
        """The words for ``action``, or for another that comes to the same, where the family has none."""
        try:
            return self._render(action, screen, resized)
        except AgentError:
            other = instead(action, screen)
            if other is None:
                raise
            return self._render(other, screen, resized)

    def _render(self, action: Action, screen: Size, resized: Size) -> str:
        if self._step is None:
            return self._format.render(action, screen, resized=resized)
        return self._format.render(stepped(action, screen, self._step), RELATIVE, resized=resized)


def instead(action: Action, screen: Size) -> Action | None:
    """What comes to the same: a finger's slide for a scroll, and finishing with the answer for answering."""
    match action:
        case Scroll(x=int(x), y=int(y), direction=direction, amount=amount, unit="px"):
            return scrolled("phone", screen, (x, y), direction, amount)
        case Answer(text=text):
            return Finish(message=text)
    return None
