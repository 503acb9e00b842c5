"""A task's ``plan`` for a page: read and checked here, without a browser, and followed by ``following``.

Each line is a mapping with one of these keys; ``targets`` says how a place is named::

    click: Save                        click it  (button: right, count: 2)
    type: Zoe, into: Name              click the field, then type; without ``into``, type where the focus is
                                       (submit: true presses Enter)
    key: ctrl+a                        press keys together
    scroll: down                       turn the wheel  (amount: 300 pixels, on: TARGET, until: TARGET is visible)
    wait_for: Thank you                wait until it is visible  (seconds: 5)
    answer: 320                        tell the user something; {css: "#total"} tells what is written there
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cuarl.env.browser.keys import UnknownKey, chord
from cuarl.env.browser.targets import BadTarget, Target, read_target, text_of
from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean

MOST_SECONDS = 60
HELP = "docs/guides/browser.md#plans"

MouseButton = Literal["left", "right", "middle"]
Direction = Literal["up", "down", "left", "right"]
Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClickStep:
    """Click a thing that is seen."""

    target: Target
    button: MouseButton = "left"
    count: Literal[1, 2, 3] = 1


@dataclass(frozen=True, slots=True)
class TypeStep:
    """Type where the focus is, or into a field that is clicked first."""

    text: str
    into: Target | None = None
    submit: bool = False


@dataclass(frozen=True, slots=True)
class KeyStep:
    """Press keys together."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScrollStep:
    """Turn the wheel once, or until something is visible."""

    direction: Direction
    amount: int = 300
    on: Target | None = None
    until: Target | None = None


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Wait until something is visible."""

    target: Target
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class AnswerStep:
    """Tell a text, or the one of a thing that is seen."""

    said: str | Target


Step = ClickStep | TypeStep | KeyStep | ScrollStep | WaitStep | AnswerStep


def read_plan(lines: Sequence[Line]) -> tuple[Step, ...]:
    """The steps of a plan whose parameters are filled in. Raises TaskError that names the step."""
    steps = []
    for number, line in enumerate(lines, start=1):
        try:
            steps.append(_read(line))
        except BadTarget as error:
            raise TaskError(f"step {number} of the plan: {error}", hint=HELP) from error
    return tuple(steps)


def phone_problem(steps: Sequence[Step]) -> str:
    """What of a plan a phone's actions can't say; empty if nothing."""
    for number, step in enumerate(steps, start=1):
        match step:
            case ScrollStep():
                return f"step {number} of the plan: with a phone's actions a page can't be scrolled"
            case ClickStep(button="right" | "middle" as button):
                return f"step {number} of the plan: a phone has no {button} button"
            case KeyStep(keys=keys) if chord(keys) not in PHONE_KEYS:
                return f"step {number} of the plan: a phone has no key {'+'.join(keys)}"
    return ""


PHONE_KEYS: Mapping[tuple[str, ...], Literal["enter", "back"]] = {("Enter",): "enter", ("Alt", "ArrowLeft"): "back"}
"""Chords for which a phone has a button, in Playwright's names."""


def _read(line: Line) -> Step:
    kinds = [kind for kind in _KINDS if kind in line]
    if not kinds:
        unknown = next((str(key) for key in line), "")
        raise BadTarget(f'unknown step "{unknown}"{did_you_mean(unknown, _KINDS)}: it has {", ".join(_KINDS)}')
    if len(kinds) > 1:
        raise BadTarget(f"{' and '.join(kinds)} are two steps: give each a line of its own")
    (kind,) = kinds
    read, options = _KINDS[kind]
    for key in line:
        if key != kind and key not in options:
            raise BadTarget(f"{kind} takes no {key}{did_you_mean(str(key), options)}")
    return read(line)


def _click(line: Line) -> Step:
    count = line.get("count", 1)
    if count not in (1, 2, 3) or isinstance(count, bool):
        raise BadTarget(f"count is {count!r}: 1, 2 or 3")
    return ClickStep(read_target(line["click"]), _one_of(line, "button", MouseButton, "left"), count)


def _type(line: Line) -> Step:
    submit = line.get("submit", False)
    if not isinstance(submit, bool):
        raise BadTarget(f"submit is {submit!r}: true or false")
    return TypeStep(text_of(line["type"]), _target(line, "into", plain="label"), submit)


def _key(line: Line) -> Step:
    text = text_of(line["key"])
    keys = (text,) if text == "+" else tuple(text.split("+"))
    try:
        chord(keys)
    except UnknownKey as error:
        raise BadTarget(str(error)) from error
    return KeyStep(keys)


def _scroll(line: Line) -> Step:
    amount = line.get("amount", 300)
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < 1:
        raise BadTarget(f"amount is {amount!r}: a number of pixels")
    direction = _one_of(line, "scroll", Direction, "")
    return ScrollStep(direction, amount, _target(line, "on"), _target(line, "until"))


def _wait_for(line: Line) -> Step:
    seconds = line.get("seconds", 5.0)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds <= MOST_SECONDS:
        raise BadTarget(f"seconds is {seconds!r}: a number up to {MOST_SECONDS}")
    return WaitStep(read_target(line["wait_for"]), float(seconds))


def _answer(line: Line) -> Step:
    said = line["answer"]
    return AnswerStep(read_target(said) if isinstance(said, Mapping) else text_of(said))


def _target(line: Line, key: str, plain: Literal["text", "label"] = "text") -> Target | None:
    return read_target(line[key], plain) if key in line else None


def _one_of(line: Line, key: str, kind: Any, default: str) -> Any:
    value, known = line.get(key, default), get_args(kind)
    if value not in known:
        raise BadTarget(f"{key} is {value!r}: {', '.join(known)}")
    return value


_KINDS: Mapping[str, tuple[Callable[[Line], Step], tuple[str, ...]]] = {
    "click": (_click, ("button", "count")),
    "type": (_type, ("into", "submit")),
    "key": (_key, ()),
    "scroll": (_scroll, ("amount", "on", "until")),
    "wait_for": (_wait_for, ("seconds",)),
    "answer": (_answer, ()),
}
"""Each kind of step: what reads it, and what it takes besides."""
