"""A room with a lamp, a fan and a clock: the smallest environment that has an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PIL import Image

from cuarl.env.base import Capabilities
from cuarl.errors import EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import Action, Answer, Click, Finish, Observation, Screenshot, StepResult

SCREEN = Observation(Screenshot(Image.new("RGB", (2, 2))))


class LampEnv:
    """Clicks at x = 0 switch the lamp, at x = 1 the fan; others are rejected. The oracle follows ``moves``."""

    volatile = ("clock",)
    capabilities = Capabilities(frozenset({"click", "finish", "answer"}), state=True, exact_reset=True, oracle=True)

    def __init__(self, *moves: Action) -> None:
        self.moves = list(moves)
        self.device: dict[str, Any] = {"lamp": False, "fan": False, "clock": 0}
        self.closed = 0

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        if "broken" in task.preset:
            raise EnvError("the lamp is broken")
        self.device |= task.preset
        return SCREEN

    async def step(self, action: Action) -> StepResult:
        self.device["clock"] += 1
        if isinstance(action, Click):
            if action.x > 1:
                return StepResult(SCREEN, info={"rejected": "nothing is there"})
            name = ("lamp", "fan")[action.x]
            self.device[name] = not self.device[name]
        return StepResult(SCREEN)

    async def state(self) -> Mapping[str, Any]:
        return dict(self.device)

    async def close(self) -> None:
        self.closed += 1

    def oracle_action(self) -> Action:
        return self.moves.pop(0)


LAMP, FAN, NOWHERE = Click(x=0, y=0), Click(x=1, y=0), Click(x=9, y=0)
DONE, GAVE_UP = Finish(), Finish(success=False)


def says(text: str) -> Answer:
    return Answer(text=text)
