"""``BrowserGymEnv``: a task of BrowserGym behind the environment seam (docs/guides/browsergym.md).

BrowserGym is a Gymnasium environment whose observation has the screenshot and the goal, and whose actions are calls
written as text. cuarl writes those that name a place on the picture; a policy never gets the page's source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cuarl.env.browsergym.actions import write
from cuarl.env.gymnasium.env import GymnasiumEnv
from cuarl.errors import EnvError
from cuarl.trajectory import Verdict
from cuarl.types import Action, Answer, Finish, StepResult

CHILD = "cuarl.env.browsergym.child"
KINDS: Mapping[Literal["phone", "desktop"], tuple[str, ...]] = {
    "desktop": (
        "click",
        "double_click",
        "long_press",
        "move",
        "mouse_down",
        "mouse_up",
        "drag",
        "scroll",
        "type",
        "key",
        "key_down",
        "key_up",
        "wait",
        "answer",
    ),
    "phone": ("click", "double_click", "long_press", "swipe", "type", "button", "wait", "answer"),
}
"""Actions that there are calls for, as rules of a table."""


def calls(device: Literal["phone", "desktop"]) -> dict[str, str]:
    """The table of actions: each as BrowserGym's call."""
    return dict.fromkeys(KINDS[device], "$browsergym") | {"click right": "$browsergym", "click middle": "$browsergym"}


class BrowserGymEnv(GymnasiumEnv):
    """One episode of a task of BrowserGym. What the agent answers or refuses is said in the chat before the verdict."""

    _said: str | None = None

    async def step(self, action: Action) -> StepResult:
        """Carry out one action."""
        if isinstance(action, Answer):
            self._said = action.text
        return await super().step(action)

    async def judge(self, answer: str | None, claimed: bool | None) -> Verdict:
        """The verdict by the task's checks, after the answer, or that it can't be done, was said."""
        self._ready()
        if claimed is False:
            await self._tell(Finish(success=False, message=answer or ""))
        elif answer is not None and answer != self._said:
            await self._tell(Answer(text=answer))
        return await super().judge(answer, claimed)

    async def _tell(self, action: Action) -> None:
        if self._counters.over:
            return
        reply, _ = await self._call({"call": "step", "action": write(action)})
        self._counters.add(
            reply["reward"], terminated=reply["terminated"], truncated=reply["truncated"], info=reply["info"]
        )

    def _goal(self, reply: Mapping[str, Any]) -> str | None:
        goal = reply["text"].get("goal")
        if not goal and not (self._task and self._task.goal):
            raise EnvError(
                "the task tells no goal, and none was given",
                where=self._source.id,
                hint="--browsergym-kwargs task.goal=GOAL",
            )
        return goal or None

    def _trouble(self, reply: Mapping[str, Any]) -> dict[str, Any]:
        error = reply["text"].get("last_action_error")
        return {"rejected": error} if error else {}
