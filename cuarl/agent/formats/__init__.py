"""One module per model family: prompt text, parser, coordinates.

A format is a named property of a run. It is never guessed from a vendor's name, since the coordinates changed between
releases of one family.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from cuarl.agent.formats.base import DeviceKind, Format, ParsedAction, Size, saw
from cuarl.agent.formats.plain_json.format import PlainJSON
from cuarl.agent.formats.qwen3_vl.format import Qwen3VL
from cuarl.agent.formats.qwen3_vl.prompt import SYSTEM_PROMPTS
from cuarl.errors import ConfigError

__all__ = ["NAMES", "SYSTEM_PROMPTS", "DeviceKind", "Format", "ParsedAction", "Size", "for_model", "get", "saw"]

_FORMATS: Mapping[str, Callable[[DeviceKind], Format]] = {"qwen3-vl": Qwen3VL, "json": PlainJSON}
_BY_MODEL_TYPE = {"qwen3_vl": "qwen3-vl", "qwen3_vl_moe": "qwen3-vl"}
NAMES: tuple[str, ...] = tuple(_FORMATS)
"""What ``get`` knows."""


def get(name: str, kind: DeviceKind = "phone") -> Format:
    """The format called ``name`` for a kind of device. Raises ``ConfigError`` for an unknown one."""
    if name not in _FORMATS:
        close = difflib.get_close_matches(name.lower().replace("_", "-"), NAMES, n=1)
        guess = f' (did you mean "{close[0]}"?)' if close else ""
        raise ConfigError(f'no format "{name}"{guess}', hint=f"--renderer-name {close[0] if close else NAMES[0]}")
    return _FORMATS[name](kind)


def for_model(model: str) -> str:
    """The format of a model: the shipped base, a folder (by its config.json) or a hub id of a family known for sure.

    Raises ``ConfigError`` where it would have to be guessed.
    """
    if model == "tiny":
        return "qwen3-vl"
    settings = Path(model).expanduser() / "config.json"
    if settings.is_file():
        found = _BY_MODEL_TYPE.get(str(json.loads(settings.read_text("utf-8")).get("model_type")))
    else:
        found = "qwen3-vl" if "qwen3-vl" in model.lower() else None
    if found is None:
        raise ConfigError(
            f'it is not known which format "{model}" was trained with', hint=f"--renderer-name {NAMES[0]}"
        )
    return found
