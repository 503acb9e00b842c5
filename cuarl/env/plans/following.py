"""Follows a plan on a screen: the next action of it, at points of the screenshot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from cuarl.env.plans.seeing import Eyes, NotSeen, Seen
from cuarl.env.plans.steps import (
    AnswerStep,
    ClickStep,
    KeyStep,
    LongPressStep,
    OpenStep,
    PauseStep,
    PressStep,
    RunStep,
    ScrollStep,
    Step,
    TypeStep,
    WaitStep,
)
from cuarl.env.plans.targets import Target
from cuarl.errors import AgentError
from cuarl.types import Action, Answer, Button, Click, Finish, Key, LongPress, OpenApp, Scroll, TypeText, Wait

WAIT_S = 0.5
MOST_WAITS = 3
"""How often in an episode it waits for a thing to look as in the screenshot; some never rest."""
MOST_SCROLLS = 20
"""How often ``scroll`` with ``until`` scrolls before it gives up."""


def chord_action(keys: tuple[str, ...]) -> Action:
    """Keys pressed together."""
    return Key(keys=keys)


class _NotYet(Exception):
    """The screen has changed since its picture was taken."""


class Follower:
    """Where an episode's plan stands. All it asks of a device is where things are; it acts by actions alone.

    ``press`` makes the action of keys that are pressed together; ``help`` says where plans are explained.
    """

    def __init__(
        self, steps: Sequence[Step], *, help: str, press: Callable[[tuple[str, ...]], Action] = chord_action
    ) -> None:
        self._steps, self._press, self._help = steps, press, help
        self._at = 0
        self._tries = 0
        """Actions that the present step took already."""
        self._waits = 0

    async def next(self, eyes: Eyes) -> Action:
        """The next action; ``Finish`` when no step is left. Raises AgentError that names a step that can't be done."""
        while self._at < len(self._steps):
            step = self._steps[self._at]
            try:
                action, done = await self._action(eyes, step)
            except _NotYet:
                self._waits += 1
                return Wait(seconds=WAIT_S)
            self._tries += 1
            if done:
                self._at, self._tries = self._at + 1, 0
            if action is not None:
                return action
        return Finish()

    async def _action(self, eyes: Eyes, step: Step) -> tuple[Action | None, bool]:
        """What the step does now, if anything, and whether it is done with it."""
        match step:
            case ClickStep():
                x, y = await self._point(eyes, step.target, "click")
                return Click(x=x, y=y, button=step.button, count=step.count), True
            case LongPressStep():
                x, y = await self._point(eyes, step.target, "long_press")
                return LongPress(x=x, y=y), True
            case TypeStep(into=Target() as into) if not self._tries:
                x, y = await self._point(eyes, into, f'type "{step.text}" into')
                return Click(x=x, y=y), False
            case ScrollStep():
                return await self._scroll(eyes, step)
            case WaitStep():
                return await self._wait(eyes, step)
            case AnswerStep(said=Target() as target):
                return Answer(text=(await self._seen(eyes, target, "answer")).text), True
        return self._said(step), True

    def _said(self, step: Step) -> Action:
        """A step that looks for nothing."""
        match step:
            case TypeStep():
                return TypeText(text=step.text, submit=step.submit)
            case RunStep():
                return TypeText(text=step.command, submit=True)
            case KeyStep():
                return self._press(step.keys)
            case PressStep():
                return Button(name=step.button)
            case OpenStep():
                return OpenApp(name=step.app)
            case PauseStep():
                return Wait(seconds=step.seconds)
            case AnswerStep():
                return Answer(text=str(step.said))
        raise AssertionError(f"{step} looks for something")

    async def _scroll(self, eyes: Eyes, step: ScrollStep) -> tuple[Action | None, bool]:
        if step.until is not None:
            missing = await self._missing(eyes, step.until)
            if not missing:
                return None, True
            if self._tries >= MOST_SCROLLS:
                doing = f"scroll {step.direction} until {step.until}"
                raise self._failed(doing, f"after {MOST_SCROLLS} times {missing}")
        width, height = eyes.size
        x, y = await self._point(eyes, step.on, "scroll on") if step.on else (width // 2, height // 2)
        return Scroll(x=x, y=y, direction=step.direction, amount=step.amount), step.until is None

    async def _wait(self, eyes: Eyes, step: WaitStep) -> tuple[Action | None, bool]:
        missing = await self._missing(eyes, step.target)
        if not missing:
            return None, True
        if self._tries * WAIT_S >= step.seconds:
            raise self._failed(f"wait_for {step.target}", f"after {step.seconds:g} s {missing}")
        return Wait(seconds=WAIT_S), False

    async def _point(self, eyes: Eyes, target: Target, verb: str) -> tuple[int, int]:
        """The pixel in the middle of what is visible of it. Raises _NotYet if the screenshot shows it otherwise."""
        if target.at is not None:
            return target.at
        seen, (width, height) = await self._seen(eyes, target, verb), eyes.size
        left, top, right, bottom = seen.box or (0.0, 0.0, 0.0, 0.0)
        box = math.floor(left), math.floor(top), min(math.ceil(right), width), min(math.ceil(bottom), height)
        # what came meanwhile is in no picture, so nobody could learn to point at it
        if self._waits < MOST_WAITS and not await eyes.as_shown(box):
            raise _NotYet
        return min(int((left + right) / 2), width - 1), min(int((top + bottom) / 2), height - 1)

    async def _seen(self, eyes: Eyes, target: Target, verb: str) -> Seen:
        try:
            return await eyes.find(target)
        except NotSeen as error:
            raise self._failed(f"{verb} {target}", str(error)) from error

    async def _missing(self, eyes: Eyes, target: Target) -> str:
        """Why a thing can't be seen; empty if it can. Several are as good as one."""
        try:
            await eyes.find(replace(target, nth=target.nth or 1))
        except NotSeen as error:
            return str(error)
        return ""

    def _failed(self, doing: str, why: str) -> AgentError:
        return AgentError(f"step {self._at + 1} of the plan, {doing}: {why}", hint=self._help)
