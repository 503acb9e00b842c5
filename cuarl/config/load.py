"""Put a configuration together: flags > files, left to right > preset > default, each value with its source.

Some defaults depend on the algorithm (``algorithms.ALGORITHMS``).

There is no environment layer: what an experiment is must be readable from its command line and its files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cuarl.config.algorithms import ALGORITHMS
from cuarl.config.files import ConfigFile, parse_value, read
from cuarl.config.kinds import kind_of
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.safe_text import has_credentials
from cuarl.suggest import did_you_mean as did_you_mean

FIELDS = ExperimentConfig.model_fields
MOST_ERRORS = 20
"""A message lists at most this many errors."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration and where each of its values came from."""

    config: ExperimentConfig
    sources: Mapping[str, str]
    """Field name → ``default``, ``algorithm NAME``, ``preset NAME``, ``FILE, line N`` or the flag."""
    files: tuple[Path, ...] = ()
    """The files that were read, in order."""
    preset: str | None = None


def resolve(
    *,
    files: Sequence[Path] = (),
    preset: str | None = None,
    flags: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
) -> Resolved:
    """Merge all layers and check the outcome. Lists are replaced, never joined.

    ``flags`` are values by field name; ``sets`` are ``key=value`` texts, which win over flags. Raises ConfigError that
    lists all unknown keys, or all wrong values, with the place of each.
    """
    values: dict[str, Any] = {}
    sources = dict.fromkeys(FIELDS, "default")
    unknown: list[tuple[str, str]] = []

    def add(key: str, value: Any, source: str) -> None:
        if key in FIELDS:
            values[key], sources[key] = value, source
        else:
            unknown.append((key, source))

    if preset is not None:
        for key, value in read_preset(preset).values.items():
            add(key, value, f"preset {preset}")
    for file in map(read, files):
        for key, value in file.values.items():
            add(key, value, file.where(key))
    for key, value in (flags or {}).items():
        add(key, value, flag_of(key))
    for text in sets:
        add(*_assignment(text))
    if unknown:
        raise _unknown_keys(unknown)
    for key, value in values.items():
        if has_credentials(value):
            raise in_url(key, where=sources[key])
    config = _validated(values, sources)
    for key in ALGORITHMS[config.algorithm].defaults:
        if sources[key] == "default":
            sources[key] = f"algorithm {config.algorithm}"
    return Resolved(config, sources, tuple(files), preset)


def in_url(what: str, *, where: str) -> ConfigError:
    """The refusal of a password or key in a URL that would be kept with the run, in its store and in exports."""
    return ConfigError(
        f"{what} has a password or key in its URL, which would be written into the run", where=where,
        hint="take it out of the URL; keys come from the environment: export OPENAI_API_KEY=…",
    )  # fmt: skip


def flag_of(key: str) -> str:
    """The command-line flag of a field."""
    return "--" + key.replace("_", "-")


def presets() -> dict[str, str]:
    """Names of the shipped presets, and what each is for."""
    folder = resources.files("cuarl.config") / "presets"
    found = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            first = entry.read_text(encoding="utf-8").splitlines()[0]
            found[entry.name.removesuffix(".yaml")] = first.removeprefix("#").strip()
    return found


def read_preset(name: str) -> ConfigFile:
    """Read a shipped preset. Raises ConfigError for an unknown name."""
    if name not in presets():
        raise ConfigError(f'unknown preset "{name}"{did_you_mean(name, presets())}', hint="cuarl config presets")
    with resources.as_file(resources.files("cuarl.config") / "presets" / f"{name}.yaml") as path:
        return read(path, label=f"preset {name}")


def _assignment(text: str) -> tuple[str, Any, str]:
    key, equals, raw = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f'"{text}" is not key=value', where="-s", hint="-s group_size=8")
    value = parse_value(raw)
    if key in FIELDS and isinstance(value, bool | int | float):
        kind = kind_of(FIELDS[key])
        if kind.base is str:
            value = raw
    return key, value, f"-s {key}"


def _unknown_keys(unknown: Sequence[tuple[str, str]]) -> ConfigError:
    lines = [f'unknown key "{key}"{did_you_mean(key, FIELDS)}' for key, _ in unknown]
    if len(lines) == 1:
        return ConfigError(lines[0], where=unknown[0][1], hint="cuarl config show --keys all")
    listed = [f"{line} at {source}" for line, (_, source) in zip(lines, unknown, strict=True)]
    return ConfigError(_listing(listed, "keys are unknown"), hint="cuarl config show --keys all")


def _validated(values: Mapping[str, Any], sources: Mapping[str, str]) -> ExperimentConfig:
    try:
        return ExperimentConfig.model_validate(dict(values))
    except ValidationError as error:
        raise _wrong_values(error, sources) from error


def _wrong_values(error: ValidationError, sources: Mapping[str, str]) -> ConfigError:
    found: dict[str, tuple[str, str | None]] = {}
    for detail in error.errors():
        key = str(detail["loc"][0]) if detail["loc"] else ""
        found.setdefault(key, (_sentence(key, detail), sources.get(key)))
    hint = f"cuarl config show --keys {','.join(filter(None, found)) or 'all'}"
    if len(found) == 1:
        what, where = next(iter(found.values()))
        return ConfigError(what, where=where, hint=hint)
    listed = [f"{what} at {where}" for what, where in found.values()]
    return ConfigError(_listing(listed, "values are wrong"), hint=hint)


def _sentence(key: str, detail: ErrorDetails) -> str:
    message = detail["msg"].removeprefix("Value error, ")
    if not key:
        return message
    message = message.removeprefix("Input should be ").replace("a valid string", "text")
    verb = "" if detail["type"] == "value_error" else "must be "
    return f"{key} {verb}{message} (got {detail['input']!r})" if verb else f"{key}: {message}"


def _listing(lines: Sequence[str], title: str) -> str:
    shown = [f"  {line}" for line in lines[:MOST_ERRORS]]
    more = [f"  and {len(lines) - MOST_ERRORS} more"] if len(lines) > MOST_ERRORS else []
    return "\n".join([f"{len(lines)} {title}", *shown, *more])
