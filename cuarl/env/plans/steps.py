"""The steps of a plan.

Each line is a mapping with one key that says what to do, and others that say how::

    click: Save                        click or tap it  (button: right, count: 2)
    long_press: Save                   press and hold it
    type: Zoe, into: Name              click the field, then type; without ``into``, type where the focus is
                                       (submit: true presses Enter)
    key: ctrl+a                        press keys together
    press: back                        press a button of the device
    open: Clock                        open an app by its name
    run: ls > list.txt                 type a command into the terminal that has the focus, and press Enter
    scroll: down                       scroll  (amount: 300 pixels, on: TARGET, until: TARGET is visible)
    wait_for: Thank you                wait until it is visible  (seconds: 5)
    wait: 1                            wait some seconds
    answer: 320                        tell the user something; a target, as a mapping, tells what is written there

A kind of device has some of these, and names of places of its own (``targets``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from cuarl.env.plans.targets import BadTarget, Names, Target, read_target, text_of
from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean

MOST_SECONDS = 60
AMOUNT_PX = 300
"""How far ``scroll`` goes at once, where it does not say."""

MouseButton = Literal["left", "right", "middle"]
Direction = Literal["up", "down", "left", "right"]
DeviceButton = Literal["back", "home", "recents", "menu", "power", "volume_up", "volume_down", "enter"]
Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClickStep:
    """Click a thing that is seen."""

    target: Target
    button: MouseButton = "left"
    count: Literal[1, 2, 3] = 1


@dataclass(frozen=True, slots=True)
class LongPressStep:
    """Press and hold a thing that is seen."""

    target: Target


@dataclass(frozen=True, slots=True)
class TypeStep:
    """Type where the focus is, or into a field that is clicked first."""

    text: str
    into: Target | None = None
    submit: bool = False


@dataclass(frozen=True, slots=True)
class RunStep:
    """Type a command and press Enter, where a terminal has the focus."""

    command: str


@dataclass(frozen=True, slots=True)
class KeyStep:
    """Press keys together."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PressStep:
    """Press a button of the device."""

    button: DeviceButton


@dataclass(frozen=True, slots=True)
class OpenStep:
    """Open an app by its name."""

    app: str


@dataclass(frozen=True, slots=True)
class ScrollStep:
    """Scroll once, or until something is visible."""

    direction: Direction
    amount: int = AMOUNT_PX
    on: Target | None = None
    until: Target | None = None


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Wait until something is visible."""

    target: Target
    seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class PauseStep:
    """Wait some seconds, whatever is seen."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AnswerStep:
    """Tell a text, or the one of a thing that is seen."""

    said: str | Target


Step = (
    ClickStep
    | LongPressStep
    | TypeStep
    | RunStep
    | KeyStep
    | PressStep
    | OpenStep
    | ScrollStep
    | WaitStep
    | PauseStep
    | AnswerStep
)


class Words(NamedTuple):
    """What plans for one kind of device can say."""

    kinds: tuple[str, ...]
    """Keys of steps."""
    names: Names
    chord_problem: Callable[[tuple[str, ...]], str]
    """Why keys can't be pressed together; empty if they can."""
    help: str
    """Where this is written for people."""


def read_steps(lines: Sequence[Line], words: Words) -> tuple[Step, ...]:
    """The steps of a plan whose parameters are filled in. Raises TaskError that names the step."""
    steps = []
    for number, line in enumerate(lines, start=1):
        try:
            steps.append(_read(line, words))
        except BadTarget as error:
            raise TaskError(f"step {number} of the plan: {error}", hint=words.help) from error
    return tuple(steps)


def _read(line: Line, words: Words) -> Step:
    kinds = [kind for kind in words.kinds if kind in line]
    if not kinds:
        unknown = next((str(key) for key in line), "")
        near = did_you_mean(unknown, words.kinds)
        raise BadTarget(f'unknown step "{unknown}"{near}: it has {", ".join(words.kinds)}')
    if len(kinds) > 1:
        raise BadTarget(f"{' and '.join(kinds)} are two steps: give each a line of its own")
    (kind,) = kinds
    read, options = _READERS[kind]
    for key in line:
        if key != kind and key not in options:
            raise BadTarget(f"{kind} takes no {key}{did_you_mean(str(key), options)}")
    return read(line, words)


def _click(line: Line, words: Words) -> Step:
    count = line.get("count", 1)
    if count not in (1, 2, 3) or isinstance(count, bool):
        raise BadTarget(f"count is {count!r}: 1, 2 or 3")
    return ClickStep(read_target(line["click"], words.names), _one_of(line, "button", MouseButton, "left"), count)


def _type(line: Line, words: Words) -> Step:
    submit = line.get("submit", False)
    if not isinstance(submit, bool):
        raise BadTarget(f"submit is {submit!r}: true or false")
    return TypeStep(text_of(line["type"]), _target(line, "into", words, plain="label"), submit)


def _key(line: Line, words: Words) -> Step:
    text = text_of(line["key"])
    keys = (text,) if text == "+" else tuple(text.split("+"))
    if problem := words.chord_problem(keys):
        raise BadTarget(problem)
    return KeyStep(keys)


def _scroll(line: Line, words: Words) -> Step:
    amount = line.get("amount", AMOUNT_PX)
    if not isinstance(amount, int) or isinstance(amount, bool) or amount < 1:
        raise BadTarget(f"amount is {amount!r}: a number of pixels")
    direction = _one_of(line, "scroll", Direction, "")
    return ScrollStep(direction, amount, _target(line, "on", words), _found(line, "until", words))


def _wait_for(line: Line, words: Words) -> Step:
    target = _found(line, "wait_for", words)
    assert target is not None
    return WaitStep(target, _seconds(line, "seconds", 5.0))


def _answer(line: Line, words: Words) -> Step:
    said = line["answer"]
    return AnswerStep(_found(line, "answer", words) or "" if isinstance(said, Mapping) else text_of(said))


def _target(line: Line, key: str, words: Words, plain: Literal["text", "label"] = "text") -> Target | None:
    return read_target(line[key], words.names, plain) if key in line else None


def _found(line: Line, key: str, words: Words) -> Target | None:
    """A target that has to be looked for: at a pixel there is always something."""
    target = _target(line, key, words)
    if target is not None and target.at:
        raise BadTarget(f"{key} needs something to look for, and a pixel is always there")
    return target


def _seconds(line: Line, key: str, default: float) -> float:
    seconds = line.get(key, default)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds <= MOST_SECONDS:
        raise BadTarget(f"{key} is {seconds!r}: a number up to {MOST_SECONDS}")
    return float(seconds)


def _one_of(line: Line, key: str, kind: Any, default: str) -> Any:
    value, known = line.get(key, default), get_args(kind)
    if value not in known:
        raise BadTarget(f"{key} is {value!r}: {', '.join(known)}")
    return value


_READERS: Mapping[str, tuple[Callable[[Line, Words], Step], tuple[str, ...]]] = {
    "click": (_click, ("button", "count")),
    "long_press": (lambda line, words: LongPressStep(read_target(line["long_press"], words.names)), ()),
    "type": (_type, ("into", "submit")),
    "key": (_key, ()),
    "press": (lambda line, words: PressStep(_one_of(line, "press", DeviceButton, "")), ()),
    "open": (lambda line, words: OpenStep(text_of(line["open"])), ()),
    "run": (lambda line, words: RunStep(text_of(line["run"])), ()),
    "scroll": (_scroll, ("amount", "on", "until")),
    "wait_for": (_wait_for, ("seconds",)),
    "wait": (lambda line, words: PauseStep(_seconds(line, "wait", 0.0)), ()),
    "answer": (_answer, ()),
}
"""Each kind of step: what reads it, and what it takes besides."""
KINDS = tuple(_READERS)
