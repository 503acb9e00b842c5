"""Descriptions in the place of coordinates, for a model that names what to act on and a second one that points there.

Markup and words are those of ``qwen3-vl``; ``target`` and ``target2`` stand where it has ``coordinate`` and
``coordinate2``:

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "target": {"element": "switch", "label": "Wi-Fi"}}}
    </tool_call>

A phone has one word more, ``scroll`` with a direction, since a description of an empty place to swipe to is hard to
find.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from cuarl.agent.formats.arguments import Arguments
from cuarl.agent.formats.base import ParsedAction, Size
from cuarl.agent.formats.call import CallError
from cuarl.agent.formats.described.prompt import PARTS, described_prompt
from cuarl.agent.formats.gestures import DIRECTIONS
from cuarl.agent.formats.qwen3_vl.format import Qwen3VL
from cuarl.agent.formats.qwen3_vl.markup import find_call
from cuarl.agent.formats.qwen3_vl.vocabulary import read_action
from cuarl.agent.formats.thinking import spoken_part
from cuarl.errors import AgentError
from cuarl.types import Action, Answer, Button, Finish, Key, OpenApp, ParseError, Scroll, TypeText, Wait

_PLACES = {"target": "coordinate", "target2": "coordinate2"}
_POINTLESS = (Answer, Button, Finish, Key, OpenApp, TypeText, Wait)


class Described(Qwen3VL):
    """The format for one kind of device. Its points have to be found (``ParsedAction.described``)."""

    family: ClassVar[str] = "described"

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        return described_prompt(self.kind)

    def parse(self, text: str, screen: Size, *, resized: Size | None = None, strict: bool = True) -> ParsedAction:
        """Read the action in ``text`` (see ``Format.parse``)."""
        warnings: list[str] = []
        try:
            spoken = spoken_part(text, strict=strict, warnings=warnings)
            call = dict(find_call(spoken, self.tool, strict=strict, warnings=warnings))
            described = _taken(call, strict=strict, warnings=warnings)
            action = self._action(call, screen, strict=strict, warnings=warnings)
        except CallError as error:
            return ParsedAction(error=ParseError(code=error.code, message=str(error)), warnings=tuple(warnings))
        return ParsedAction(action, warnings=tuple(warnings), described=described)

    def _action(self, call: dict[str, Any], screen: Size, *, strict: bool, warnings: list[str]) -> Action:
        if self.kind == "desktop" or call.get("action") != "scroll":
            return read_action(call, self.kind, screen, strict=strict, warnings=warnings)
        given = Arguments(call, screen, strict=strict, warnings=warnings)
        x, y = given.point("coordinate") if given.has("coordinate") else (None, None)
        scroll = Scroll(x=x, y=y, direction=cast(Any, given.choice("direction", DIRECTIONS)), amount=screen.height // 2)
        given.finish()
        return scroll

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        if not isinstance(action, _POINTLESS):
            raise AgentError(f"there are no words for the point of {action!r}: targets are described")
        return super()._write(action, screen, grid)


def _taken(call: dict[str, Any], *, strict: bool, warnings: list[str]) -> tuple[str, ...]:
    """The targets of ``call`` in words, each replaced by a point to be found. Raises ``CallError``."""
    for name in (*_PLACES.values(), "path"):
        if name in call:
            raise CallError("bad_argument", f"{name} is a point, and targets are described here")
    described = []
    for name, point in _PLACES.items():
        if call.get(name) is not None:
            described.append(_words(call.pop(name), name, strict=strict, warnings=warnings))
            call[point] = [0, 0]
    return tuple(described)


def _words(target: Any, name: str, *, strict: bool, warnings: list[str]) -> str:
    if isinstance(target, str) and not strict:
        warnings.append(f"{name} is a text instead of an object")
        target = {"element": target}
    if not isinstance(target, dict) or not all(isinstance(value, str) for value in target.values()):
        raise CallError("bad_argument", f"{name} must be an object of texts, not {target!r}")
    unknown = sorted(set(target) - set(PARTS))
    if unknown and strict:
        raise CallError("bad_argument", f"{name} has needless parts: {', '.join(unknown)}")
    if unknown:
        warnings.append(f"{name} has needless parts: {', '.join(unknown)}")
    if not target.get("element", "").strip():
        raise CallError("missing_argument", f"{name} does not say which element")
    looks = [target[part].strip() for part in ("size", "color", "shape") if target.get(part, "").strip()]
    words = " ".join([*looks, target["element"].strip()])
    label, location = target.get("label", "").strip(), target.get("location", "").strip()
    return words + (f' labelled "{label}"' if label else "") + (f", at {location}" if location else "")
