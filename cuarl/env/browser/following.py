"""A plan that is followed on a page: what it sees of it, in pixels of the screenshot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from cuarl.env.browser.keys import chord
from cuarl.env.browser.options import BrowserOptions
from cuarl.env.browser.plan import HELP, PHONE_KEYS, phone_problem
from cuarl.env.browser.pointing import find
from cuarl.env.browser.tabs import Tabs
from cuarl.env.plans.following import Follower, chord_action
from cuarl.env.plans.seeing import Seen
from cuarl.env.plans.steps import Step
from cuarl.env.plans.targets import Target
from cuarl.errors import TaskError
from cuarl.types import Action, Button

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, pixels of the screenshot."""


@dataclass(frozen=True, slots=True)
class PageEyes:
    """What a plan may ask of a page."""

    tabs: Tabs
    options: BrowserOptions
    looks_as_shown: Callable[[Box], Awaitable[bool]]

    @property
    def size(self) -> tuple[int, int]:
        """Of screenshots, pixels."""
        return self.options.pixels

    async def as_shown(self, box: Box) -> bool:
        """Whether what is there now is what the last screenshot shows there."""
        return await self.looks_as_shown(box)

    async def find(self, target: Target) -> Seen:
        """The one visible element that is meant. Raises NotSeen, EnvError."""
        seen, scale = await find(self.tabs, target), self.options.scale
        left, top, right, bottom = seen.box or (0.0, 0.0, 0.0, 0.0)
        return Seen(seen.text, (left * scale, top * scale, right * scale, bottom * scale))


def follower(steps: Sequence[Step], options: BrowserOptions) -> Follower:
    """Follows ``steps`` on a page. Raises TaskError for what its actions can't say."""
    if options.kind == "phone" and (problem := phone_problem(steps)):
        raise TaskError(problem, hint="--browser-actions desktop")
    return Follower(steps, help=HELP, press=_button_or_chord if options.kind == "phone" else chord_action)


def _button_or_chord(keys: tuple[str, ...]) -> Action:
    button = PHONE_KEYS.get(chord(keys))
    return Button(name=button) if button else chord_action(keys)
