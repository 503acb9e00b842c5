"""Plain JSON, for a model of any family: the answer is one object and nothing else, coordinates from 0 to 1000.

    {"action": "click", "coordinate": [512, 233]}

Actions and arguments are those of ``qwen3-vl``, without its markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuarl.agent.formats.base import DeviceKind, ParsedAction, Size
from cuarl.agent.formats.qwen3_vl.call import CallError
from cuarl.agent.formats.qwen3_vl.prompt import SCHEMAS
from cuarl.agent.formats.qwen3_vl.words import read_action, write_action
from cuarl.agent.prompt import Window
from cuarl.types import Action, ParseError


@dataclass(frozen=True, slots=True)
class PlainJSON:
    """The format for one kind of device."""

    kind: DeviceKind = "phone"

    @property
    def name(self) -> str:
        """``json-mobile`` or ``json-computer``."""
        return "json-mobile" if self.kind == "phone" else "json-computer"

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
        """Read the object in ``text`` (see ``Format.parse``); coordinates are relative, so ``resized`` is not needed."""
        warnings: list[str] = []
        try:
            call = _find(text, strict=strict, warnings=warnings)
            action = read_action(call, self.kind, screen, strict=strict, warnings=warnings)
        except CallError as error:
            return ParsedAction(error=ParseError(code=error.code, message=str(error)), warnings=tuple(warnings))
        return ParsedAction(action=action, warnings=tuple(warnings))

    def render(self, action: Action, screen: Size, *, resized: Size | None = None) -> str:
        """Write ``action`` as an object (see ``Format.render``)."""
        return json.dumps(write_action(action, self.kind, screen), ensure_ascii=False)


def _find(text: str, *, strict: bool, warnings: list[str]) -> Mapping[str, Any]:
    """The whole answer as an object; if not ``strict``, the first object in it. Raises ``CallError``."""
    start = text.find("{")
    if start < 0:
        raise CallError("no_call", "no JSON object in the answer")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise CallError("bad_json", str(error)) from error
    if text[:start].strip() or text[end:].strip():
        if strict:
            raise CallError("bad_json", "the answer is more than one JSON object")
        warnings.append("more text around the object")
    if not isinstance(value, dict):
        raise CallError("bad_json", "the answer is no JSON object")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
