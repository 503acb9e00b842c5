"""What a person may do on a device in the words of a model: what both the device and the model know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from cuarl.agent.describe import describe
from cuarl.agent.wording import Wording
from cuarl.errors import AgentError
from cuarl.types import (
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

BUTTONS: tuple[str, ...] = get_args(Button.model_fields["name"].annotation)
_ENDS = frozenset({"answer", "finish"})
"""Carried out by the episode, whatever the device."""

GESTURES: Mapping[str, Action] = {
    "click": Click(x=1, y=1),
    "double click": Click(x=1, y=1, count=2),
    "triple click": Click(x=1, y=1, count=3),
    "right click": Click(x=1, y=1, button="right"),
    "middle click": Click(x=1, y=1, button="middle"),
    "long press": LongPress(x=1, y=1),
    "move": Move(x=1, y=1),
    "swipe": Swipe(x=1, y=1, x2=9, y2=9),
    "drag": Drag(path=((1, 1), (9, 9))),
    "scroll": Scroll(x=9, y=9, direction="down", amount=5),
    "type": TypeText(text="a"),
    "type and enter": TypeText(text="a", submit=True),
    "key": Key(keys=("Return",)),
    **{f"button {name}": Button(name=name) for name in BUTTONS},
    "open app": OpenApp(name="a"),
    "wait": Wait(),
    "answer": Answer(text="a"),
    "finish": Finish(),
}
"""An example of each thing that a page offers."""


def offered(wording: Wording, actions: frozenset[str]) -> frozenset[str]:
    """Names of ``GESTURES`` that the model can say and a device that carries out ``actions`` can do.

    ``wording`` has seen the screen.
    """
    return frozenset(name for name, action in GESTURES.items() if _possible(wording, actions, action))


def understand(wording: Wording, actions: frozenset[str], action: Action) -> tuple[str, Action]:
    """The words for ``action`` and what they mean. Raises AgentError where model or device has none for it."""
    try:
        words, said = wording.understood(action)
    except AgentError as error:
        raise AgentError(f"the model's vocabulary has no word for {describe(action)}") from error
    if said.kind not in actions | _ENDS:
        raise AgentError(f"this device can't {said.kind.replace('_', ' ')}")
    return words, said


def _possible(wording: Wording, actions: frozenset[str], action: Action) -> bool:
    try:
        understand(wording, actions, action)
    except AgentError:
        return False
    return True
