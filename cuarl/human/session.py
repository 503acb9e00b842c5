"""What a person is asked, turn by turn, and what is shown meanwhile; agents wait here, and the page's server answers.

Nothing here has a time limit: while a person is waited for, the episode's clock stands still (``pause``). A page that
is closed loses nothing, for all that it shows is here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from cuarl.agent.base import Decision
from cuarl.agent.describe import describe
from cuarl.rollout.pause import Pause
from cuarl.rollout.spec import EpisodeSpec
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Trajectory, Turn
from cuarl.types import NOTE, Action, Observation, Screenshot, points

Understand = Callable[[Action], tuple[str, Action]]
"""The model's words for an action, and what they mean. Raises AgentError if model or device has none for it."""


class NotNow(Exception):
    """What a page asks for is about another turn than the one that is waited for."""


class Skip:
    """A person does not want this episode."""


class LetIt:
    """A person lets the policy do what it has decided."""


Reply = Action | Skip | LetIt


@dataclass(frozen=True, slots=True)
class Question:
    """One turn that a person decides."""

    spec: EpisodeSpec
    task: TaskInstance
    observation: Observation
    turns: Sequence[Turn]
    understand: Understand
    offers: Collection[str]
    """What of ``vocabulary.GESTURES`` the page may offer."""
    kind: str = "phone"
    proposal: Decision | None = None
    """What the policy has decided, where there is one."""

    @property
    def turn(self) -> int:
        """Index of the turn that is decided."""
        return len(self.turns)


@dataclass(slots=True)
class Session:
    """All episodes of one run with one person.

    ``max_turns`` is the run's limit; a task's own may be lower. ``steps`` of a policy wait for the person (``assist``).
    """

    episodes: int
    max_turns: int
    assist: bool = False
    pause: Pause = field(default_factory=Pause)
    stepwise: bool = True
    """Whether each decision of the policy waits for the person; else it acts until somebody takes over."""
    notice_s: float = 1.0
    """How long a policy that acts by itself shows what it is about to do."""
    over: bool = False
    version: int = 1
    """Grows with every change."""
    _question: Question | None = None
    _shown: dict[str, Any] = field(default_factory=dict)
    _reply: Reply | None = None
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _pictures: dict[str, Screenshot] = field(default_factory=dict)
    _begun: list[str] = field(default_factory=list)
    _last: dict[str, Any] | None = None
    _ended: int = 0

    def clock(self) -> float:
        """Seconds on a monotonic clock that stands still while a person is waited for."""
        return time.monotonic() - self.pause.paused_s

    # --- the side of the run ---------------------------------------------------------------------------------------

    async def ask(self, question: Question) -> Reply:
        """Wait until a person decides on a turn, however long that takes."""
        self._show(question)
        self._question, self._reply, self._answered = question, None, anyio.Event()
        self._publish()
        self.pause.suspend()
        try:
            await self._answered.wait()
        finally:
            self.pause.resume()
            self._question = None
            self._publish()
        assert self._reply is not None
        return self._reply

    async def taken_over(self, question: Question) -> bool:
        """Show what a policy is about to do by itself; whether a person takes over before it does."""
        self._show(question)
        self._publish()
        self.pause.suspend()
        try:
            with anyio.move_on_after(self.notice_s):
                while not self.stepwise:
                    await self._changed.wait()
        finally:
            self.pause.resume()
        return self.stepwise

    def told(self, trajectory: Trajectory) -> None:
        """Show what became of an episode that is over."""
        self._last, self._ended = _result(trajectory), self._ended + 1
        if trajectory.episode_id == self._shown.get("episode"):
            self._shown["ended"] = True
        self._publish()

    def end(self) -> None:
        """There is nothing more to do."""
        self.over = True
        self._publish()

    def _show(self, question: Question) -> None:
        spec, screen = question.spec, question.observation.screenshot
        if spec.episode_id not in self._begun:
            self._begun.append(spec.episode_id)
            self._pictures.clear()
        self._pictures[screen.digest] = screen
        limit = min(self.max_turns, question.task.max_steps)
        self._shown = _shown(question) | {"number": len(self._begun), "max_turns": limit}

    def _publish(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = anyio.Event()

    # --- the side of the page --------------------------------------------------------------------------------------

    async def changed(self, after: int, within_s: float) -> dict[str, Any]:
        """The view, as soon as it is newer than version ``after``, or when the time is up."""
        with anyio.move_on_after(within_s):
            while self.version <= after and not self.over:
                await self._changed.wait()
        return self.view()

    def view(self) -> dict[str, Any]:
        """What the page shows."""
        return {
            "version": self.version,
            "over": self.over,
            "waiting": self._question is not None,
            "episodes": self.episodes,
            "assist": self.assist,
            "stepwise": self.stepwise,
            "turn": self._shown or None,
            "last": self._last,
            "ended": self._ended,
        }

    def picture(self, digest: str) -> Screenshot | None:
        """A screen of the present episode."""
        return self._pictures.get(digest)

    def act(self, episode: str, turn: int, action: Action) -> tuple[str, Action]:
        """Do ``action`` in a turn: the model's words for it, and what they mean. Raises NotNow or AgentError."""
        question = self._asked(episode, turn)
        words, said = question.understand(action)
        self._give(action)
        return words, said

    def skip(self, episode: str, turn: int) -> None:
        """Leave an episode without a verdict. Raises NotNow."""
        self._asked(episode, turn)
        self._give(Skip())

    def let_it(self, episode: str, turn: int) -> None:
        """Have the policy do what it has decided. Raises NotNow."""
        if self._asked(episode, turn).proposal is None:
            raise NotNow("no policy has decided anything here")
        self._give(LetIt())

    def walk(self, *, stepwise: bool) -> None:
        """Have the policy wait for the person in each turn, or go on by itself."""
        self.stepwise = stepwise
        if not stepwise and self._question is not None and self._question.proposal is not None:
            self._give(LetIt())
        self._publish()

    def _asked(self, episode: str, turn: int) -> Question:
        question = self._question
        if question is None or self._reply is not None:
            raise NotNow("the device is at work; wait until it shows its next screen")
        if (question.spec.episode_id, question.turn) != (episode, turn):
            raise NotNow("this turn is over: the page is behind, and another one may be open")
        return question

    def _give(self, reply: Reply) -> None:
        self._reply = reply
        self._answered.set()


# --- in JSON -------------------------------------------------------------------------------------------------------


def _shown(question: Question) -> dict[str, Any]:
    spec, task, observation = question.spec, question.task, question.observation
    return {
        "episode": spec.episode_id,
        "attempt": spec.attempt,
        "task": task.task_id,
        "goal": task.goal,
        "index": question.turn,
        "kind": question.kind,
        "offers": sorted(question.offers),
        "screen": _screen(observation.screenshot),
        "note": observation.text.get(NOTE, ""),
        "place": observation.text.get("url", ""),
        "turns": [_turn(turn) for turn in question.turns],
        "proposal": _proposal(question.proposal),
        "ended": False,
    }


def _screen(screenshot: Screenshot) -> dict[str, Any]:
    return {"digest": screenshot.digest, "width": screenshot.width, "height": screenshot.height}


def _turn(turn: Turn) -> dict[str, Any]:
    error = turn.parse_error
    return {
        "index": turn.index,
        "screen": turn.screenshot.model_dump(),
        "action": in_json(turn.action) if turn.action else None,
        "said": turn.sampled.text if turn.sampled else "",
        "trouble": turn.rejected or (f"{error.code}: {error.message}" if error else ""),
        "changed": turn.changed,
        "sampled": bool(turn.sampled and turn.sampled.logprobs is not None),
    }


def _proposal(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    error = decision.parse_error
    return {
        "action": in_json(decision.action) if decision.action else None,
        "said": decision.sampled.text if decision.sampled else "",
        "trouble": f"{error.code}: {error.message}" if error else "",
    }


def in_json(action: Action) -> dict[str, Any]:
    """An action as a page shows it: in words, and where it touches the screen."""
    return {"kind": action.kind, "words": describe(action), "points": points(action), "data": action.model_dump()}


def _result(trajectory: Trajectory) -> dict[str, Any]:
    verdict = trajectory.verdict
    checks: Sequence[Mapping[str, Any]] = [
        {"what": f"{c.path} {c.op}" + ("" if c.expected is None else f" {c.expected!r}"), "is": repr(c.actual)[:200]}
        for c in (verdict.checks if verdict else ())
        if not c.passed
    ]
    return {
        "episode": trajectory.episode_id,
        "task": trajectory.task_id,
        "success": trajectory.success,
        "stop": trajectory.stop.value,
        "turns": len(trajectory.turns),
        "failure": trajectory.failure.message if trajectory.failure else "",
        "missed": checks,
        "side_effects": list(verdict.side_effects) if verdict else [],
    }
