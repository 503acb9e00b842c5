"""What a model family's format does: say what may be called, read calls, write calls, map coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from cuarl.agent.prompt import Window
from cuarl.types import Action, ParseError

DeviceKind = Literal["phone", "desktop"]
REPAIRED = "json-repair"
UNCLOSED = "brackets are missing"
MUDDLED = "quotes, escapes or brackets"
"""How the warnings begin that the form of an answer was guessed."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """An action in pixels of the shown screenshot, or why the text is none; with what had to be repaired."""

    action: Action | None = None
    error: ParseError | None = None
    warnings: tuple[str, ...] = ()
    described: tuple[str, ...] = ()
    """What the action's points are meant to be on, in words and in their order, where a second model has to say where
    that is (``agent.pointing``): until then they are (0, 0)."""

    @property
    def guessed(self) -> bool:
        """Whether the answer's own form had to be guessed: a broken one may be one that was cut off."""
        return any(w.startswith((REPAIRED, UNCLOSED, MUDDLED)) for w in self.warnings)


class Format(Protocol):
    """How one family of models is shown a device and answers with actions. Pure."""

    @property
    def name(self) -> str:
        """Family and vocabulary, for records: ``qwen3-vl-mobile``."""
        ...

    @property
    def system_prompt(self) -> str:
        """What the model is told about the device and its actions: a constant of the format."""
        ...

    def told(self, resized: Size) -> str:
        """The system message where screenshots are seen at size ``resized``.

        Only pixels of the picture need that size.
        """
        ...

    @property
    def window(self) -> Window:
        """How much of the past the family is usually shown; experiments may say otherwise."""
        ...

    @property
    def notes(self) -> bool:
        """Whether a message has a place for words beside its screenshot.

        What else came of the last action is told there.
        """
        ...

    def sent(self, screen: Size) -> Size:
        """The size at which a screenshot is handed to the model.

        Smaller than the screen for families that ask for it.
        """
        ...

    def seen(self, sent: Size) -> Size:
        """The size at which the model sees a picture of size ``sent``, by the family's usual processor.

        A policy in this process has its own processor with its own limits, and knows better.
        """
        ...

    def parse(self, text: str, screen: Size, *, resized: Size | None = None, strict: bool = True) -> ParsedAction:
        """Read an answer to a screenshot of size ``screen``.

        ``resized`` is the size at which the model saw it, for families that answer in its pixels; None means the
        family's usual one. ``strict`` takes exactly the documented form, for training: what is let pass is learnt.
        Otherwise small faults are repaired, each with a warning. Never raises: a malformed answer is the policy's
        doing.
        """
        ...

    def render(self, action: Action, screen: Size, *, resized: Size | None = None) -> str:
        """The canonical text of ``action``; parsing it gives the action back, up to the resolution of coordinates.

        Raises ``AgentError`` for an action that the vocabulary has no word for.
        """
        ...


def saw(format: Format, screen: Size, resized: Size | None = None) -> Size:
    """``resized``, or what the family's usual processor makes of a screenshot."""
    return resized or format.seen(format.sent(screen))
