"""What all formats have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from cuarl.agent.formats.base import DeviceKind, ParsedAction, Size, saw
from cuarl.agent.formats.call import CallError
from cuarl.agent.formats.points import RELATIVE
from cuarl.agent.formats.thinking import spoken_part
from cuarl.agent.prompt import Window
from cuarl.types import Action, ParseError


class Family(ABC):
    """A format for one kind of device: a family says its words, this does the rest. See ``Format``."""

    family: ClassVar[str]
    """What ``--renderer-name`` calls it."""
    absolute: ClassVar[bool] = False
    """Whether coordinates are pixels of the picture that the model saw; else they run from 0 to 1000."""
    last_said: ClassVar[int] = 0
    """How far from the grid's far end the largest coordinate lies that is ever said."""
    window: Window = Window()
    """How much of the past is usually shown."""
    notes: bool = False
    """Whether a message may have words beside its screenshot, as results of tools have; a model that never saw any is
    shown none."""

    def __init__(self, kind: DeviceKind = "phone") -> None:
        self.kind: DeviceKind = kind

    @property
    def name(self) -> str:
        """The family, and ``-mobile`` or ``-computer``."""
        return f"{self.family}-{'mobile' if self.kind == 'phone' else 'computer'}"

    @property
    @abstractmethod
    def system_prompt(self) -> str:
        """A constant of the kind of device."""

    def told(self, resized: Size) -> str:
        """The prompt, and for absolute coordinates the size of the picture that they are pixels of."""
        if not self.absolute:
            return self.system_prompt
        return f"{self.system_prompt}\n\nThe screenshots are {resized.width} pixels wide and {resized.height} high."

    def sent(self, screen: Size) -> Size:
        """As it is."""
        return screen

    def seen(self, sent: Size) -> Size:
        """As it was sent."""
        return sent

    def grid(self, screen: Size, resized: Size | None) -> Size:
        """The space that coordinates are given in (see ``points``)."""
        return saw(self, screen, resized) if self.absolute else RELATIVE

    def parse(self, text: str, screen: Size, *, resized: Size | None = None, strict: bool = True) -> ParsedAction:
        """Read the action in ``text`` (see ``Format.parse``)."""
        warnings: list[str] = []
        try:
            spoken = spoken_part(text, strict=strict, warnings=warnings)
            action = self._read(spoken, screen, self.grid(screen, resized), strict=strict, warnings=warnings)
        except CallError as error:
            return ParsedAction(error=ParseError(code=error.code, message=str(error)), warnings=tuple(warnings))
        return ParsedAction(action=action, warnings=tuple(warnings))

    def render(self, action: Action, screen: Size, *, resized: Size | None = None) -> str:
        """Write ``action`` (see ``Format.render``)."""
        return self._write(action, screen, self.grid(screen, resized))

    @abstractmethod
    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        """The action in ``text``. Raises ``CallError``."""

    @abstractmethod
    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        """The words for ``action``. Raises ``AgentError``."""
