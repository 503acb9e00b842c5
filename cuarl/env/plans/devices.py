"""Plans for devices that tell of what is on their screens: phones behind adb, boxes, a gym's devices, sessions in pods.

Which of the steps a device can take, and by what it tells its things apart, is asked here before anything starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cuarl.env.plans.elements import ON_DEVICES, Element, find
from cuarl.env.plans.following import Follower, chord_action
from cuarl.env.plans.seeing import Seen
from cuarl.env.plans.steps import (
    KINDS,
    AnswerStep,
    ClickStep,
    KeyStep,
    Line,
    LongPressStep,
    OpenStep,
    PressStep,
    RunStep,
    ScrollStep,
    Step,
    TypeStep,
    WaitStep,
    Words,
    read_steps,
)
from cuarl.env.plans.targets import Target
from cuarl.errors import TaskError
from cuarl.types import Action, Button, Click, LongPress, OpenApp, Screenshot, Scroll, TypeText

HELP = "docs/guides/tasks.md#plans-for-phones-and-boxes"
WORDS = Words(KINDS, ON_DEVICES, lambda keys: "", HELP)
Refuse = Callable[[Action], str]
"""Why a device can't carry an action out; empty if it can."""


class Abilities(NamedTuple):
    """What a plan can have done on one kind of device."""

    name: str
    """As in ``a phone behind adb``."""
    refuse: Refuse
    ways: tuple[str, ...]
    """By what a plan can name things there."""
    terminal: bool
    """Whether a terminal may be on its screen."""


def read_plan(lines: Sequence[Line], abilities: Abilities) -> tuple[Step, ...]:
    """The steps of a plan whose parameters are filled in. Raises TaskError for one that the device can't take."""
    steps = read_steps(lines, WORDS)
    for number, step in enumerate(steps, start=1):
        if problem := _problem(step, abilities):
            raise TaskError(f"step {number} of the plan: {problem}", hint=HELP)
    return steps


def follower(lines: Sequence[Line], abilities: Abilities) -> Follower:
    """Follows a plan on such a device. Raises TaskError."""
    return Follower(read_plan(lines, abilities), help=HELP)


@dataclass(slots=True)
class DeviceEyes:
    """What a plan may ask of a device that shows ``shown``."""

    shown: Screenshot
    look: Callable[[], Awaitable[Sequence[Element]]]
    """Tells of what is there now, boxes in pixels of the screenshot."""
    shoot: Callable[[], Awaitable[Screenshot]]
    seen: Sequence[Element] = ()
    """What was told when it was looked for something last."""

    @property
    def size(self) -> tuple[int, int]:
        """Of the screenshot, pixels."""
        return self.shown.width, self.shown.height

    async def find(self, target: Target) -> Seen:
        """The one visible thing that is meant. Raises NotSeen, EnvError."""
        self.seen = await self.look()
        return find(self.seen, target)

    async def as_shown(self, box: tuple[int, int, int, int]) -> bool:
        """Whether what is there now is what the screenshot shows there."""
        now = await self.shoot()
        return now.image.crop(box).tobytes() == self.shown.image.crop(box).tobytes()


def _problem(step: Step, abilities: Abilities) -> str:
    if isinstance(step, RunStep) and not abilities.terminal:
        return f"{abilities.name} shows no terminal to run a command in; preset.setup runs some beforehand"
    for target in _targets(step):
        if target.by not in abilities.ways:
            return f"{abilities.name} does not tell things by {target.by}: name a place by {_or(abilities.ways)}"
    action = _like(step)
    return abilities.refuse(action) if action is not None else ""


def _targets(step: Step) -> Iterator[Target]:
    match step:
        case ClickStep() | LongPressStep() | WaitStep():
            yield step.target
        case TypeStep(into=Target() as into):
            yield into
        case ScrollStep():
            yield from (target for target in (step.on, step.until) if target is not None)
        case AnswerStep(said=Target() as target):
            yield target


def _like(step: Step) -> Action | None:
    """The action that the step takes, at some place; None for one that every device can take."""
    match step:
        case ClickStep():
            return Click(x=0, y=0, button=step.button, count=step.count)
        case LongPressStep():
            return LongPress(x=0, y=0)
        case TypeStep():
            return TypeText(text=step.text)
        case RunStep():
            return TypeText(text=step.command)
        case KeyStep():
            return chord_action(step.keys)
        case PressStep():
            return Button(name=step.button)
        case OpenStep():
            return OpenApp(name=step.app)
        case ScrollStep():
            return Scroll(direction=step.direction, amount=step.amount)
    return None


def _or(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
