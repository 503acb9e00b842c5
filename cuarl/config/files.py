"""Configuration files: YAML, JSON and TOML into plain mappings, with the line of each key.

YAML is read with the scalar rules of YAML 1.2, so that ``1e-5`` is a number, ``no`` is text, ``012`` is twelve and
``10:30`` is text. A key given twice is an error, as is a file that is not a mapping.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cuarl.errors import ConfigError
from cuarl.regular_file import read_regular


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The keys of one file, before any of them is checked."""

    label: str
    """How messages call it."""
    values: Mapping[str, Any]
    text: str

    def where(self, path: str) -> str:
        """The file and the line at which a key stands; one within a record (``env.contexts``) is below the record's."""
        name, _, inner = path.partition(".")
        first = self._line(name, 0)
        line = (self._line(inner, first) if inner and first else 0) or first
        return f"{self.label}, line {line}" if line else self.label

    def _line(self, key: str, after: int) -> int:
        """The first of the least indented lines behind ``after`` at which a key stands; 0 if there is none."""
        pattern = re.compile(rf"""^([\s{{,\[]*)["']?{re.escape(key)}["']?\s*[:=.\]]""")
        lines = enumerate(self.text.splitlines(), start=1)
        found = [(len(match[1]), number) for number, line in lines if number > after and (match := pattern.match(line))]
        return min(found, default=(0, 0))[1]


def read(path: Path, label: str | None = None) -> ConfigFile:
    """Read a file by its suffix. Raises ConfigError for one that is missing, broken or not a mapping."""
    label = label or str(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(f'can\'t tell the format of "{path.name}"', where=label, hint=f"name it {path.stem}.yaml")
    try:
        text = read_regular(path).decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't read the configuration file: {_reason(error)}", where=label) from error
    try:
        values = reader(text)
    except _Broken as error:
        raise ConfigError(f"broken configuration file: {error}", where=f"{label}, line {error.line}") from error
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"a configuration is a mapping of keys to values, not a {type(values).__name__}", where=label)
    return ConfigFile(label, {str(key): value for key, value in values.items()}, text)


def parse_value(text: str) -> Any:
    """Parse the value of ``key=value`` as YAML; text that is no YAML is itself."""
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError:
        return text


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"


class _Broken(Exception):
    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


class _Loader(yaml.SafeLoader):
    """The safe loader with the scalars of YAML 1.2's core schema."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f'"{key.value}" is given twice', key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _core_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    rules = (
        ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN"),
        ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("tag:yaml.org,2002:int", r"[-+]?[0-9]+", "-+0123456789"),
        ("tag:yaml.org,2002:float",
         r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+.0123456789"),
    )  # fmt: skip
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, first in rules:
        for char in [*first, ""] if tag.endswith("null") else first:
            found.setdefault(char, []).append((tag, re.compile(rf"(?:{pattern})\Z")))
    return found


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


_Loader.yaml_implicit_resolvers = _core_resolvers()
# PyYAML's own reads a leading zero as octal
_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _Broken(error.problem or "not YAML", line) from error
    except yaml.YAMLError as error:
        raise _Broken(str(error).splitlines()[0], 1) from error


def _json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise _Broken(f'"{twice}" is given twice', _last_line(text, twice))
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise _Broken(error.msg, error.lineno) from error


def _last_line(text: str, key: str) -> int:
    return text[: text.rindex(f'"{key}"')].count("\n") + 1


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        what = re.sub(r" \(at .*\)$", "", str(error))
        raise _Broken(what, int(line[1]) if line else text.count("\n") + 1) from error


_READERS: Mapping[str, Callable[[str], Any]] = {".yaml": _yaml, ".yml": _yaml, ".json": _json, ".toml": _toml}
