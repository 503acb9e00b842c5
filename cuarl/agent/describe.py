"""An action in words, for people."""

from __future__ import annotations

from cuarl.safe_text import printable
from cuarl.types import (
    Action,
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
    held_keys,
)


def describe(action: Action) -> str:
    """An action in a few words, on one line, whatever text it carries."""
    held = "".join(f"{key}+" for key in held_keys(action))
    match action:
        case Click():
            words = f"{'double ' * (action.count == 2)}{'triple ' * (action.count == 3)}click"
            button = "" if action.button == "left" else f" {action.button}"
            text = f"{words}{button} ({action.x}, {action.y})"
        case LongPress() | Move():
            text = f"{action.kind.replace('_', ' ')} ({action.x}, {action.y})"
        case Swipe():
            text = f"swipe ({action.x}, {action.y}) to ({action.x2}, {action.y2})"
        case Drag():
            text = "drag " + " to ".join(f"({x}, {y})" for x, y in action.path)
        case Scroll():
            text = f"scroll {action.direction} {action.amount} {action.unit}"
        case SelectOption():
            text = f'select "{action.option}" ({action.x}, {action.y})'
        case TypeText():
            text = f'type "{action.text}"' + (" and enter" if action.submit else "")
        case Key():
            text = f"key {'+'.join(action.keys)}" + (f" {action.count} times" if action.count > 1 else "")
        case MouseDown() | MouseUp():
            words = "press" if isinstance(action, MouseDown) else "release"
            where = f" ({action.x}, {action.y})" if action.x is not None and action.y is not None else ""
            text = f"{words} the {action.button} button{where}"
        case KeyDown() | KeyUp():
            text = f"{'press' if isinstance(action, KeyDown) else 'release'} the key {action.key}"
        case Button():
            text = f"button {action.name}"
        case OpenApp():
            text = f"open {action.name}"
        case Wait():
            text = f"wait {action.seconds:g} s"
        case Answer():
            text = f'answer "{action.text}"'
        case Finish():
            text = f"finish: {'success' if action.success else 'failure'}" + (
                f' "{action.message}"' * bool(action.message)
            )
    return printable(held + text)
