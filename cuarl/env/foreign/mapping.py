"""Actions in another environment's words, by a table that its user writes (docs/guides/gymnasium.md).

A table has a rule for each kind of action: what the action must be, and what is sent for it::

    {"key Left": 0, "click": {"type": 3, "at": ["$x", "$y"]}, "type": {"type": 5, "text": "$text"}}

A word such as ``$x`` in what is sent stands for that part of the action. The rule that says most about an action
counts: ``click right`` before ``click`` before ``any``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import yaml

from cuarl.env.browser.keys import UnknownKey, chord
from cuarl.env.browsergym.actions import UnmappedAction, write
from cuarl.env.held import beyond
from cuarl.errors import ConfigError
from cuarl.suggest import did_you_mean
from cuarl.types import (
    Action,
    ActionKind,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    OpenApp,
    Scroll,
    SelectOption,
    Swipe,
    TypeText,
    Wait,
)

NAMES: Mapping[str, str] = {
    "any": "",
    "double_click": "click",
    "triple_click": "click",
    **{kind: kind for kind in get_args(ActionKind) if kind != "finish"},
}
"""How a rule may begin, and the kind of action that is meant; ``any`` is every kind."""
WORDS = (
    "x", "y", "x2", "y2", "u", "v", "u2", "v2", "text", "submit", "keys", "direction", "amount", "seconds", "name",
    "action", "browsergym",
)  # fmt: skip
"""Parts of an action: ``u`` and ``v`` are ``x`` and ``y`` as shares of the width and height, from 0 to 1."""
ANY_KINDS = frozenset(get_args(ActionKind))


class NoWord(ValueError):
    """There is no rule for an action, or the action lacks what its rule sends."""


@dataclass(frozen=True, slots=True)
class Table:
    """What is sent for which action. Made by ``read_table``."""

    rules: Mapping[str, Any] = field(default_factory=dict)
    buttons: Mapping[str, Any] = field(default_factory=dict)
    """Buttons that are drawn below the picture, by label, and what a click on each sends."""
    place: Callable[[float, float], Any] | None = None
    """What a click sends by where it is (shares of width and height), where a rule can't say it."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of action that have a rule, and ``finish``, which needs none."""
        if "any" in self.rules:
            return ANY_KINDS
        named = {NAMES[rule.partition(" ")[0]] for rule in self.rules}
        return frozenset(named | ({"click"} if self.buttons or self.place else set()) | {"finish"})

    @property
    def holds(self) -> bool:
        """Whether keys that are held during a click are sent with it."""
        return any(_whole(self.rules.get(name)) for name in ("click left", "click", "any"))

    def value(self, action: Action, size: tuple[int, int]) -> Any:
        """What is sent for an action on a picture of ``size`` pixels. Raises NoWord."""
        rule = next((name for name in names(action) if name in self.rules), None)
        if rule is not None:
            if (reason := beyond(action, "this environment")) and not _whole(self.rules[rule]):
                raise NoWord(reason)
            return fill(self.rules[rule], parts(action, size))
        if isinstance(action, Click) and action.button == "left" and self.place is not None:
            return self.place((action.x + 0.5) / size[0], (action.y + 0.5) / size[1])
        raise NoWord(f"this environment has no {names(action)[0]}")


def _whole(value: Any) -> bool:
    """Whether a rule sends all of an action, and not some of its parts alone."""
    if isinstance(value, Mapping):
        return any(map(_whole, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_whole, value))
    return value in ("$action", "$browsergym")


def read_table(given: str | Mapping[str, Any], where: str) -> Table:
    """The table that a YAML or JSON text, or a mapping, says. Raises ConfigError for one that can't be."""
    if isinstance(given, str):
        try:
            given = yaml.safe_load(given)
        except yaml.YAMLError as error:
            raise ConfigError(f"the table of actions is no YAML: {str(error).splitlines()[0]}", where=where) from error
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(
            f"{given!r} is no table of actions",
            where=where,
            hint="'{key Left: 0, key Right: 1}', see docs/guides/gymnasium.md",
        )
    buttons = given.get("buttons", {})
    if not isinstance(buttons, Mapping):
        raise ConfigError("buttons of a table are labels with what each sends", where=where, hint="buttons: {left: 0}")
    rules = {_rule(str(name), where): value for name, value in given.items() if name != "buttons"}
    for value in rules.values():
        _require_words(value, where)
    return Table(rules, {str(label): value for label, value in buttons.items()})


def names(action: Action) -> list[str]:
    """How a rule for this action may be written, the one that says most first."""
    kind = action.kind
    match action:
        case Click(count=2):
            return ["double_click", "any"]
        case Click(count=3):
            return ["triple_click", "any"]
        case Click(button=button):
            return [f"click {button}", *(["click"] if button == "left" else []), "any"]
        case Swipe():
            return [f"swipe {_way(action)}", kind, "any"]
        case Scroll():
            return [f"scroll {action.direction}", kind, "any"]
        case Key(keys=keys):
            return [f"key {pressed(keys)}", kind, "any"]
        case Button(name=name):
            return [f"button {name}", kind, "any"]
    return [kind, "any"]


def pressed(keys: tuple[str, ...]) -> str:
    """One spelling for all names of a chord's keys: ``Control+a``, ``ArrowLeft``."""
    try:
        return "+".join(chord(keys))
    except UnknownKey:
        return "+".join(keys)


def parts(action: Action, size: tuple[int, int]) -> dict[str, Any]:
    """The values of an action's words on a picture of ``size`` pixels."""
    found = _placed(action, size)
    match action:
        case TypeText():
            found |= {"text": action.text, "submit": action.submit}
        case SelectOption():
            found |= {"text": action.option}
        case Answer():
            found |= {"text": action.text}
        case Finish():
            found |= {"text": action.message}
        case Key():
            found |= {"keys": pressed(action.keys)}
        case Swipe():
            found |= {"direction": _way(action)}
        case Scroll():
            found |= {"direction": action.direction, "amount": action.amount}
        case Wait():
            found |= {"seconds": action.seconds}
        case Button() | OpenApp():
            found |= {"name": action.name}
        case KeyDown() | KeyUp():
            found |= {"keys": pressed((action.key,))}
    return found | {"action": action.model_dump(mode="json")} | _written(action)


def fill(value: Any, words: Mapping[str, Any]) -> Any:
    """Replace ``$word`` in strings, at any depth; a lone word keeps the part's type.

    Raises NoWord for one that is missing.
    """
    if isinstance(value, Mapping):
        return {key: fill(one, words) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [fill(one, words) for one in value]
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value == "$browsergym" and value[1:] not in words:
        raise NoWord("BrowserGym has no call for this action")
    if value[1:] not in words:
        raise NoWord(f"this action has no {value[1:]}, which the environment is to be told")
    return words[value[1:]]


def _placed(action: Action, size: tuple[int, int]) -> dict[str, Any]:
    match action:
        case Click(x=x, y=y) | LongPress(x=x, y=y) | Move(x=x, y=y) | SelectOption(x=x, y=y):
            start, end = (x, y), None
        case MouseDown(x=int(x), y=int(y)) | MouseUp(x=int(x), y=int(y)):
            start, end = (x, y), None
        case Swipe(x=x, y=y, x2=x2, y2=y2):
            start, end = (x, y), (x2, y2)
        case Drag(path=path):
            start, end = path[0], path[-1]
        case Scroll():
            start, end = (
                (size[0] // 2 if action.x is None else action.x, size[1] // 2 if action.y is None else action.y),
                None,
            )
        case _:
            return {}
    found = _named(start, size, "")
    return found | (_named(end, size, "2") if end else {})


def _named(point: tuple[int, int], size: tuple[int, int], suffix: str) -> dict[str, Any]:
    x, y = point
    # the middle of the pixel, so that shares of a picture of another size fall into the same place
    shares = {f"u{suffix}": (x + 0.5) / size[0], f"v{suffix}": (y + 0.5) / size[1]}
    return {f"x{suffix}": x, f"y{suffix}": y, **shares}


def _written(action: Action) -> dict[str, str]:
    try:
        return {"browsergym": write(action)}
    except UnmappedAction:
        return {}


def _way(swipe: Swipe) -> str:
    across, down = swipe.x2 - swipe.x, swipe.y2 - swipe.y
    if abs(across) > abs(down):
        return "right" if across > 0 else "left"
    return "down" if down > 0 else "up"


def _rule(text: str, where: str) -> str:
    first, _, rest = text.strip().partition(" ")
    if first not in NAMES:
        raise ConfigError(
            f'"{text}" begins with no kind of action{did_you_mean(first, NAMES)}',
            where=where,
            hint=f"one of {', '.join(NAMES)}",
        )
    rest = rest.strip()
    if first == "key" and rest:
        return f"key {pressed((rest,))}"
    return f"{first} {rest}" if rest else first


def _require_words(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for one in value.values():
            _require_words(one, where)
    elif isinstance(value, list | tuple):
        for one in value:
            _require_words(one, where)
    elif isinstance(value, str) and value.startswith("$") and value[1:] not in WORDS:
        raise ConfigError(
            f'"{value}" stands for no part of an action{did_you_mean(value[1:], WORDS)}',
            where=where,
            hint=f"one of {', '.join('$' + word for word in WORDS)}",
        )
