"""What a model family's format does: say what may be called, read calls, write calls, map coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from cuarl.types import Action, ParseError

DeviceKind = Literal["phone", "desktop"]


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


class Format(Protocol):
    """How one family of models is shown a device and answers with actions. Pure."""

    @property
    def name(self) -> str:
        """Family and vocabulary, for records: ``qwen3-vl-mobile``."""
        ...

    @property
    def system_prompt(self) -> str:
        """What the model is told about the device and its actions; the same for every screen and task."""
        ...

    def parse(self, text: str, screen: Size, *, resized: Size | None = None, strict: bool = True) -> ParsedAction:
        """Read an answer to a screenshot of size ``screen``.

        ``resized`` is the size the model saw, for families that answer in its pixels. ``strict`` takes exactly the
        documented form, for training: what is let pass is learnt. Otherwise small faults are repaired, each with a
        warning. Never raises: a malformed answer is the policy's doing.
        """
        ...

    def render(self, action: Action, screen: Size) -> str:
        """The canonical text of ``action``; parsing it gives the action back, up to the resolution of coordinates.

        Raises ``AgentError`` for an action that the vocabulary has no word for.
        """
        ...
