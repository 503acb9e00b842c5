"""The tool calls of Qwen3-VL: ``mobile_use`` on phones, ``computer_use`` on desktops, coordinates from 0 to 1000.

An answer is one call, in the family's markup (some thought may precede it):

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [512, 233]}}
    </tool_call>

Two readings of ours: a typed text that ends with a line break means Enter behind it, and ``time`` may say how long a
press, a swipe or a drag takes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from cuarl.agent.formats.base import DeviceKind, ParsedAction, Size
from cuarl.agent.formats.qwen3_vl.call import CallError, find_call
from cuarl.agent.formats.qwen3_vl.prompt import SYSTEM_PROMPTS, TOOLS
from cuarl.agent.formats.qwen3_vl.words import read_action, write_action
from cuarl.agent.prompt import Window
from cuarl.types import Action, ParseError


@dataclass(frozen=True, slots=True)
class Qwen3VL:
    """The format for one kind of device."""

    kind: DeviceKind = "phone"

    @property
    def name(self) -> str:
        """``qwen3-vl-mobile`` or ``qwen3-vl-computer``."""
        return "qwen3-vl-mobile" if self.kind == "phone" else "qwen3-vl-computer"

    @property
    def tool(self) -> str:
        """The function that the model calls."""
        return TOOLS[self.kind]

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        return SYSTEM_PROMPTS[self.kind]

    @property
    def window(self) -> Window:
        """The present screen alone."""
        return Window()

    def sent(self, screen: Size) -> Size:
        """As it is."""
        return screen

    def seen(self, sent: Size) -> Size:
        """Of no account: coordinates are relative."""
        return sent

    def parse(self, text: str, screen: Size, *, resized: Size | None = None, strict: bool = True) -> ParsedAction:
        """Read the call in ``text`` (see ``Format.parse``); coordinates are relative, so ``resized`` is not needed."""
        warnings: list[str] = []
        try:
            call = find_call(text, self.tool, strict=strict, warnings=warnings)
            action = read_action(call, self.kind, screen, strict=strict, warnings=warnings)
        except CallError as error:
            return ParsedAction(error=ParseError(code=error.code, message=str(error)), warnings=tuple(warnings))
        return ParsedAction(action=action, warnings=tuple(warnings))

    def render(self, action: Action, screen: Size, *, resized: Size | None = None) -> str:
        """Write ``action`` as a call (see ``Format.render``)."""
        call = {"name": self.tool, "arguments": write_action(action, self.kind, screen)}
        return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"
