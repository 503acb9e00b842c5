"""Plain JSON, for a model of any family: the answer is one object and nothing else, coordinates from 0 to 1000.

    {"action": "click", "coordinate": [512, 233]}

Actions and arguments are those of ``qwen3-vl``, without its markup.
"""

from __future__ import annotations

import json
import re
from typing import ClassVar

from cuarl.agent.formats.base import Size
from cuarl.agent.formats.call import dumped, whole_object
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.qwen3_vl.prompt import SCHEMAS
from cuarl.agent.formats.qwen3_vl.vocabulary import read_action, write_action
from cuarl.types import Action

_START = re.compile(r"\{")


class PlainJSON(Family):
    """The format for one kind of device."""

    family: ClassVar[str] = "json"
    notes = True

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        return (
            "You operate a device. Each turn you see its screen; answer with the next action as one JSON object and "
            "nothing else, for example\n"
            '{"action": "wait", "time": 1}\n'
            "Coordinates are [x, y] from 0 to 1000, from the top left corner to the bottom right one. "
            "The object holds the arguments that this schema describes:\n" + json.dumps(SCHEMAS[self.kind])
        )

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        call = whole_object(text, may_start=_START, strict=strict, warnings=warnings)
        return read_action(call, self.kind, screen, strict=strict, warnings=warnings, grid=grid)

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        return dumped(write_action(action, self.kind, screen, grid))
