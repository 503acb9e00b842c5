"""Any cuarl environment as a ``gymnasium.Env`` (Gymnasium 1.x), for learners that speak that interface.

Needs ``gymnasium`` (``pip install 'cuarl[gymnasium]'``). cuarl's environments are asynchronous: each ``CuarlEnv`` runs
its own in an event loop of one background thread, which ``close`` ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from anyio.from_thread import BlockingPortal, start_blocking_portal
from gymnasium import spaces

from cuarl.env.base import Env
from cuarl.env.sim.devices import make_sim
from cuarl.errors import ConfigError
from cuarl.rollout.driven import Driven, Outcome
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Action, Answer, Button, Click, Finish, LongPress, Observation, Swipe, TypeText, Wait

KINDS = ("click", "long_press", "swipe", "type", "back", "home", "wait", "answer", "finish")
"""What the entry ``kind`` of an action means, by index."""
CHARACTERS = "".join(map(chr, range(32, 127)))
"""Characters of the entry ``text``: printable ASCII."""
MAX_TEXT = 64

Given = Mapping[str, Any]


class CuarlEnv(gymnasium.Env[np.ndarray, Given]):
    """Tasks of cuarl, one an episode.

    Observation: the screenshot, uint8 (height, width, 3), RGB. Action: a mapping of ``kind`` (an index into ``KINDS``),
    ``point`` and ``to`` (float32 (2,), x and y as shares of the width and height, 0 to 1) and ``text`` (at most 64
    printable ASCII characters); each kind reads the entries that it needs. Reward: 1 when the episode ends, by
    ``finish``, by the environment or for want of turns, and the task is done; else 0, with the verdict in
    ``info["verdict"]``.

    ``reset(seed=..., options={"task": ID})`` picks the task; without options it is drawn. The same seed gives the same
    task, instance and device.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012 - declared so by Gymnasium

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        make_env: Callable[[Task], Env] | None = None,
        max_turns: int = 20,
        render_mode: str | None = None,
    ) -> None:
        """``make_env`` gives a fresh environment for a task, by default a small simulated device.

        All tasks must show screens of one size. Raises ConfigError without tasks.
        """
        if not tasks:
            raise ConfigError("there are no tasks", hint="load some with cuarl.tasks.source.load")
        self._tasks = {task.id: task for task in tasks}
        self._make = make_env or (lambda task: make_sim(task.env))
        self._max_turns = max_turns
        self.render_mode = render_mode
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._driven: Driven | None = None
        self._shown = self._begin(tasks[0].instantiate(0), 0)
        self.observation_space = spaces.Box(0, 255, self._shown.shape, np.uint8)
        place = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Dict(
            {
                "kind": spaces.Discrete(len(KINDS)),
                "point": place,
                "to": spaces.Box(0.0, 1.0, (2,), np.float32),
                "text": spaces.Text(MAX_TEXT, min_length=0, charset=CHARACTERS),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode. Raises ConfigError for a task that is not among this environment's."""
        super().reset(seed=seed)
        name = (options or {}).get("task") or str(self.np_random.choice(list(self._tasks)))
        if name not in self._tasks:
            raise ConfigError(f"there is no task {name} here", hint=f"one of {', '.join(sorted(self._tasks)[:5])} …")
        drawn = int(self.np_random.integers(2**31))
        instance = self._tasks[name].instantiate(drawn)
        self._shown = self._begin(instance, drawn)
        assert self._driven is not None
        return self._shown, {"task": name, "goal": self._driven.task.goal}

    def step(self, action: Given) -> tuple[np.ndarray, SupportsFloat, bool, bool, dict[str, Any]]:
        """Carry out one action; see the class for its entries."""
        if self._driven is None or self._driven.over:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset first")
        outcome: Outcome = self._call(self._driven.act, self._read(action))
        self._shown = _pixels(outcome.observation)
        info = dict(outcome.info)
        reward = 0.0
        if outcome.verdict is not None:
            reward = float(outcome.verdict.success)
            info["verdict"] = outcome.verdict.model_dump(mode="json")
        return self._shown, reward, outcome.terminated, outcome.truncated, info

    def render(self) -> np.ndarray | None:
        """The screenshot with ``render_mode="rgb_array"``."""
        return self._shown if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Release the device and end the background thread. Safe to call twice."""
        self._release()
        self._stack.close()
        self._portal = None

    def _begin(self, instance: TaskInstance, seed: int) -> np.ndarray:
        if self._portal is None:
            self._portal = self._stack.enter_context(start_blocking_portal())
        self._release()
        self._driven = Driven(self._make(self._tasks[instance.task_id]), instance, max_turns=self._max_turns)
        return _pixels(self._call(self._driven.begin, seed))

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        assert self._portal is not None
        return self._portal.call(function, *arguments)

    def _release(self) -> None:
        driven, self._driven = self._driven, None
        if driven is not None:
            self._call(driven.close)

    def _read(self, given: Given) -> Action:
        (x, y), (x2, y2) = self._place(given["point"]), self._place(given["to"])
        match KINDS[int(given["kind"])]:
            case "click":
                return Click(x=x, y=y)
            case "long_press":
                return LongPress(x=x, y=y)
            case "swipe":
                return Swipe(x=x, y=y, x2=x2, y2=y2)
            case "type":
                return TypeText(text=given["text"])
            case "back" | "home" as name:
                return Button(name=name)
            case "wait":
                return Wait()
            case "answer":
                return Answer(text=given["text"])
        return Finish()

    def _place(self, shares: np.ndarray) -> tuple[int, int]:
        height, width = self._shown.shape[:2]
        return min(int(shares[0] * width), width - 1), min(int(shares[1] * height), height - 1)


def _pixels(observation: Observation) -> np.ndarray:
    return np.array(observation.screenshot.image, dtype=np.uint8)
