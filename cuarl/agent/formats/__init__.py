"""One module per model family: prompt text, parser, coordinates, history.

A format is a named property of a run. It is never guessed from a vendor's name, since the coordinates changed between
releases of one family.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cuarl.agent.formats.anthropic.format import AnthropicComputer
from cuarl.agent.formats.base import DeviceKind, Format, ParsedAction, Size, saw
from cuarl.agent.formats.gemini.format import GeminiComputer
from cuarl.agent.formats.openai.format import OpenAIComputer
from cuarl.agent.formats.plain_json.format import PlainJSON
from cuarl.agent.formats.qwen3_vl.format import Qwen3VL
from cuarl.agent.formats.qwen3_vl.prompt import SYSTEM_PROMPTS
from cuarl.agent.formats.qwen25_vl.format import Qwen25VL
from cuarl.agent.formats.ui_tars.format import UITars, UITars15
from cuarl.errors import ConfigError
from cuarl.suggest import nearest

__all__ = ["ANY", "NAMES", "SYSTEM_PROMPTS", "DeviceKind", "Format", "ParsedAction", "Size", "for_model", "get", "saw"]

_FORMATS: Mapping[str, Callable[[DeviceKind], Format]] = {
    f.family: f
    for f in (Qwen3VL, Qwen25VL, UITars, UITars15, OpenAIComputer, AnthropicComputer, GeminiComputer, PlainJSON)
}
NAMES: tuple[str, ...] = tuple(_FORMATS)
"""What ``get`` knows."""
ANY = PlainJSON.family
"""The format for a model of any family."""
_BY_MODEL_TYPE = {"qwen3_vl": "qwen3-vl", "qwen3_vl_moe": "qwen3-vl", "qwen2_5_vl": "qwen2.5-vl"}
_BY_NAME = (
    (r"ui-?tars-?1[.-]5", "ui-tars-1.5"),
    (r"ui-?tars-(?:\d+b|1[.-]0)", "ui-tars-1.0"),
    (r"ui-?tars", None),
    (r"qwen3-vl", "qwen3-vl"),
    (r"qwen2\.5-vl", "qwen2.5-vl"),
    (r"computer-use-preview(?:-2025-\d\d-\d\d)?$", "openai"),
    (r"^(?:anthropic/)?claude-(?:3-[57]-sonnet|(?:opus|sonnet|haiku)-\d)", "anthropic"),
    (r"^(?:google/)?gemini-3\.5", "gemini"),
)
"""Names of families whose vocabulary is known for sure, first match first; None: known to be told apart by no name."""


def get(name: str, kind: DeviceKind = "phone") -> Format:
    """The format called ``name`` for a kind of device. Raises ``ConfigError`` for an unknown one."""
    if name not in _FORMATS:
        near = nearest(name.replace("_", "-"), NAMES)
        guess = f' (did you mean "{near}"?)' if near else f" (there are {', '.join(NAMES)})"
        raise ConfigError(f'no format "{name}"{guess}', hint=f"--renderer-name {near or ANY}")
    return _FORMATS[name](kind)


def for_model(model: str) -> str:
    """The format of a model: the shipped base, or one of a family known for sure by its name or its config.json.

    The name goes first: fine-tuned models keep the config.json of their base. Raises ``ConfigError`` where the format
    would have to be guessed.
    """
    if model == "tiny":
        return "qwen3-vl"
    known, found = _named(model)
    settings = Path(model).expanduser() / "config.json"
    if not known and settings.is_file():
        found = _BY_MODEL_TYPE.get(str(json.loads(settings.read_text("utf-8")).get("model_type")))
    if found is None:
        raise ConfigError(
            f'it is not known which format "{model}" was trained with; any model can be asked for plain JSON',
            hint=f"--renderer-name {ANY}",
        )
    return found


def _named(model: str) -> tuple[bool, str | None]:
    """Whether a model's name tells its family, and the format of that."""
    name = model.lower().replace("_", "-").rstrip("/")
    name = name if "/" not in name or not Path(model).expanduser().exists() else name.rsplit("/", 1)[-1]
    for pattern, found in _BY_NAME:
        if re.search(pattern, name):
            return True, found
    return False, None
