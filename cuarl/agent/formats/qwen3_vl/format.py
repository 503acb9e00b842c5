"""The tool calls of Qwen3-VL: ``mobile_use`` on phones, ``computer_use`` on desktops, coordinates from 0 to 1000.

An answer is one call, in the family's markup (some thought may precede it):

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [512, 233]}}
    </tool_call>

Two readings of ours: a typed text that ends with a line break means Enter behind it, and ``time`` may say how long a
press, a swipe or a drag takes.
"""

from __future__ import annotations

from typing import ClassVar

from cuarl.agent.formats.base import Size
from cuarl.agent.formats.call import dumped
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.qwen3_vl.markup import find_call
from cuarl.agent.formats.qwen3_vl.prompt import SYSTEM_PROMPTS, TOOLS
from cuarl.agent.formats.qwen3_vl.vocabulary import read_action, write_action
from cuarl.types import Action


class Qwen3VL(Family):
    """The format for one kind of device."""

    family: ClassVar[str] = "qwen3-vl"

    @property
    def tool(self) -> str:
        """The function that the model calls."""
        return TOOLS[self.kind]

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        return SYSTEM_PROMPTS[self.kind]

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        call = find_call(text, self.tool, strict=strict, warnings=warnings)
        return read_action(call, self.kind, screen, strict=strict, warnings=warnings, grid=grid)

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        call = {"name": self.tool, "arguments": write_action(action, self.kind, screen, grid)}
        return f"<tool_call>\n{dumped(call)}\n</tool_call>"
