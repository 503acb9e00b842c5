"""Follows a plan on a page: the next action of it, at points of the screenshot."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence

from cuarl.env.browser.keys import chord
from cuarl.env.browser.options import BrowserOptions
from cuarl.env.browser.plan import (
    HELP,
    PHONE_KEYS,
    AnswerStep,
    ClickStep,
    KeyStep,
    ScrollStep,
    Step,
    TypeStep,
    WaitStep,
    phone_problem,
)
from cuarl.env.browser.pointing import NotSeen, Seen, find
from cuarl.env.browser.tabs import Tabs
from cuarl.env.browser.targets import Target
from cuarl.errors import AgentError, TaskError
from cuarl.types import Action, Answer, Button, Click, Finish, Key, Scroll, TypeText, Wait

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, pixels of the screenshot."""
AsShown = Callable[[Box], Awaitable[bool]]
"""Whether what is there now is what the last screenshot shows there."""
WAIT_S = 0.5
MOST_WAITS = 3
"""How often in an episode it waits for a thing to look as in the screenshot; some never rest."""
MOST_SCROLLS = 20
"""How often ``scroll`` with ``until`` turns the wheel before it gives up."""


class _NotYet(Exception):
    """The page has changed since its picture was taken."""


class Follower:
    """Where an episode's plan stands. All it asks of the page is where things are; it acts by actions alone."""

    def __init__(self, steps: Sequence[Step], options: BrowserOptions, as_shown: AsShown) -> None:
        self._steps, self._options, self._as_shown = steps, options, as_shown
        self._at = 0
        self._tries = 0
        """Actions that the present step took already."""
        self._waits = 0
        if options.kind == "phone" and (problem := phone_problem(steps)):
            raise TaskError(problem, hint="--browser-actions desktop")

    async def next(self, tabs: Tabs) -> Action:
        """The next action; ``Finish`` when no step is left. Raises AgentError that names a step that can't be done."""
        while self._at < len(self._steps):
            step = self._steps[self._at]
            try:
                action, done = await self._action(tabs, step)
            except _NotYet:
                self._waits += 1
                return Wait(seconds=WAIT_S)
            self._tries += 1
            if done:
                self._at, self._tries = self._at + 1, 0
            if action is not None:
                return action
        return Finish()

    async def _action(self, tabs: Tabs, step: Step) -> tuple[Action | None, bool]:
        """What the step does now, if anything, and whether it is done with it."""
        match step:
            case ClickStep():
                x, y = await self._point(tabs, step.target, "click")
                return Click(x=x, y=y, button=step.button, count=step.count), True
            case TypeStep(into=Target() as into) if not self._tries:
                x, y = await self._point(tabs, into, f'type "{step.text}" into')
                return Click(x=x, y=y), False
            case TypeStep():
                return TypeText(text=step.text, submit=step.submit), True
            case KeyStep():
                button = PHONE_KEYS.get(chord(step.keys)) if self._options.kind == "phone" else None
                return Button(name=button) if button else Key(keys=step.keys), True
            case ScrollStep():
                return await self._scroll(tabs, step)
            case WaitStep():
                return await self._wait(tabs, step)
            case AnswerStep(said=Target() as target):
                return Answer(text=(await self._seen(tabs, target, "answer")).text), True
            case AnswerStep(said=said):
                return Answer(text=str(said)), True

    async def _scroll(self, tabs: Tabs, step: ScrollStep) -> tuple[Action | None, bool]:
        if step.until is not None:
            missing = await self._missing(tabs, step.until)
            if not missing:
                return None, True
            if self._tries >= MOST_SCROLLS:
                doing = f"scroll {step.direction} until {step.until}"
                raise self._failed(doing, f"after {MOST_SCROLLS} times {missing}")
        width, height = self._options.pixels
        x, y = await self._point(tabs, step.on, "scroll on") if step.on else (width // 2, height // 2)
        return Scroll(x=x, y=y, direction=step.direction, amount=step.amount), step.until is None

    async def _wait(self, tabs: Tabs, step: WaitStep) -> tuple[Action | None, bool]:
        missing = await self._missing(tabs, step.target)
        if not missing:
            return None, True
        if self._tries * WAIT_S >= step.seconds:
            raise self._failed(f"wait_for {step.target}", f"after {step.seconds:g} s {missing}")
        return Wait(seconds=WAIT_S), False

    async def _point(self, tabs: Tabs, target: Target, verb: str) -> tuple[int, int]:
        """The pixel in the middle of what is visible of it. Raises _NotYet if the screenshot shows it otherwise."""
        seen = await self._seen(tabs, target, verb)
        scale, (width, height) = self._options.scale, self._options.pixels
        left, top, right, bottom = (value * scale for value in seen.box or (0, 0, 0, 0))
        box = math.floor(left), math.floor(top), min(math.ceil(right), width), min(math.ceil(bottom), height)
        # what came meanwhile is in no picture, so nobody could learn to point at it
        if self._waits < MOST_WAITS and not await self._as_shown(box):
            raise _NotYet
        return min(int((left + right) / 2), width - 1), min(int((top + bottom) / 2), height - 1)

    async def _seen(self, tabs: Tabs, target: Target, verb: str) -> Seen:
        try:
            return await find(tabs, target)
        except NotSeen as error:
            raise self._failed(f"{verb} {target}", str(error)) from error

    async def _missing(self, tabs: Tabs, target: Target) -> str:
        """Why a thing can't be seen; empty if it can. Several are as good as one."""
        try:
            await find(tabs, Target(target.by, target.value, target.name, target.nth or 1))
        except NotSeen as error:
            return str(error)
        return ""

    def _failed(self, doing: str, why: str) -> AgentError:
        return AgentError(f"step {self._at + 1} of the plan, {doing}: {why}", hint=HELP)
