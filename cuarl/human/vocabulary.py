"""What a person may do on a device in the words of a model: what both the device and the model know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, get_args

from cuarl.agent.base import Decision
from cuarl.agent.describe import describe
from cuarl.errors import AgentError
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Turn
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
    Observation,
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


class Words(Protocol):
    """How a person's actions are said: in a model's words (``agent.wording.Wording``), or in others."""

    @property
    def name(self) -> str:
        """Whose words they are, for records."""
        ...

    def see(self, observation: Observation, turns: Sequence[Turn]) -> None:
        """Take in the screen that is acted on next. Once a turn."""
        ...

    def understood(self, action: Action) -> tuple[str, Action]:
        """The words for ``action``, and what they mean. Raises AgentError if there are none."""
        ...

    def decision(self, task: TaskInstance, turns: Sequence[Turn], action: Action) -> Decision:
        """``action`` as a decision, with its record. Raises as ``understood``."""
        ...


def offered(wording: Words, actions: frozenset[str]) -> frozenset[str]:
    """Names of ``GESTURES`` that the model can say and a device that carries out ``actions`` can do.

    ``wording`` has seen the screen.
    """
    return frozenset(name for name, action in GESTURES.items() if _possible(wording, actions, action))


def understand(wording: Words, actions: frozenset[str], action: Action) -> tuple[str, Action]:
    """The words for ``action`` and what they mean. Raises AgentError where model or device has none for it."""
    try:
        words, said = wording.understood(action)
    except AgentError as error:
        raise AgentError(f"the vocabulary has no word for {describe(action)}") from error
    if said.kind not in actions | _ENDS:
        raise AgentError(f"this device can't {said.kind.replace('_', ' ')}")
    return words, said


def _possible(wording: Words, actions: frozenset[str], action: Action) -> bool:
    try:
        understand(wording, actions, action)
    except AgentError:
        return False
    return True
