"""Put a configuration together: flags > files, left to right > preset > default, each value with its source.

Some defaults depend on the algorithm (``algorithms.ALGORITHMS``).

There is no environment layer: what an experiment is must be readable from its command line and its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cuarl.config.algorithms import ALGORITHMS
from cuarl.config.earlier import nested
from cuarl.config.files import ConfigFile, parse_value, read
from cuarl.config.keys import at, flag_of, keys, paths
from cuarl.config.kinds import kind_of
from cuarl.config.layers import PRESET, Given, flat, of_key, settle
from cuarl.config.learning import inner
from cuarl.config.schema import ExperimentConfig
from cuarl.config.unions import UNIONS, sentence
from cuarl.errors import ConfigError
from cuarl.safe_text import has_credentials
from cuarl.suggest import did_you_mean as did_you_mean

RECORDED = "config.json"
"""What runs call their configuration. Those of earlier versions have all fields at the top."""
MOST_ERRORS = 20
"""A message lists at most this many errors."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration and where each of its values came from."""

    config: ExperimentConfig
    sources: Mapping[str, str]
    """Path (``seed``, ``env``, ``env.contexts``) → ``default``, ``algorithm NAME``, ``preset NAME``, ``FILE, line N``
    or the flag."""
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

    ``flags`` are values by the names of flags, or by field; ``sets`` are ``key=value`` texts, which win over flags.
    Raises ConfigError that lists all keys that can't be taken, or all wrong values, with the place of each.
    """
    given: list[Given] = []
    if preset is not None:
        given += flat(read_preset(preset).values, lambda _: f"{PRESET}{preset}")
    for place in files:
        file = read(place)
        given += flat(nested(file.values) if place.name == RECORDED else file.values, file.where)
    for name, value in (flags or {}).items():
        key = keys().get(name)
        given += flat({name: value}, lambda key: flag_of(key)) if key is None else of_key(key, value, key.flag)
    for text in sets:
        given += _assignment(text)
    settled = settle(given)
    if settled.problems:
        raise _problems(settled.problems)
    for one in given:
        if has_credentials(one.value):
            raise in_url(one.path, where=one.source)
    config = validated(settled.values, settled.sources)
    sources = {path: settled.sources.get(path, "default") for path in paths(config)}
    for name in ALGORITHMS[config.algorithm.type].defaults:
        path = f"algorithm.{inner(config.algorithm.type, name)}"
        if sources.get(path) == "default":
            sources[path] = f"algorithm {config.algorithm.type}"
    return Resolved(config, sources, tuple(files), preset)


def recorded(path: Path) -> ExperimentConfig:
    """The configuration that a run wrote. Raises ConfigError."""
    return resolve(files=[path]).config


def in_url(what: str, *, where: str) -> ConfigError:
    """The refusal of a password or key in a URL that would be kept with the run, in its store and in exports."""
    return ConfigError(
        f"{what} has a password or key in its URL, which would be written into the run",
        where=where,
        hint="take it out of the URL; keys come from the environment: export OPENAI_API_KEY=…",
    )


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


def _assignment(text: str) -> Iterator[Given]:
    name, equals, raw = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ConfigError(f'"{text}" is not key=value', where="-s", hint="-s group_size=8")
    value = parse_value(raw)
    if isinstance(value, bool | int | float) and all(kind_of(key.field).base is str for key in at(name)):
        value = raw
    return flat({name: value}, lambda _: f"-s {name}")


def _problems(problems: Sequence[tuple[str, str]]) -> ConfigError:
    hint = "cuarl config show --keys all"
    if len(problems) == 1:
        return ConfigError(problems[0][0], where=problems[0][1], hint=hint)
    listed = [f"{line} at {source}" for line, source in problems]
    return ConfigError(_listing(listed, "keys can't be taken"), hint=hint)


def validated(values: Mapping[str, Any], sources: Mapping[str, str]) -> ExperimentConfig:
    """The configuration of ``values``, of which ``sources`` says where each comes from. Raises ConfigError.

    The records in it are checked first, so that what is wrong in them is told like the rest.
    """
    whole, wrong = dict(values), []
    for name, union in UNIONS.items():
        if isinstance(whole[name], Mapping):
            try:
                whole[name] = union.record(whole[name]["type"]).model_validate(whole[name])
            except ValidationError as error:
                wrong += [(f"{name}.{one['loc'][0]}" if one["loc"] else name, one) for one in error.errors()]
                whole[name] = union.default
    try:
        config = ExperimentConfig.model_validate(whole)
    except ValidationError as error:
        wrong += [(str(one["loc"][0]) if one["loc"] else "", one) for one in error.errors()]
    if wrong:
        raise _wrong_values(wrong, sources)
    return config


def _wrong_values(wrong: Sequence[tuple[str, ErrorDetails]], sources: Mapping[str, str]) -> ConfigError:
    found: dict[str, tuple[str, str | None]] = {}
    for key, detail in wrong:
        found.setdefault(key, (sentence(key, detail), sources.get(key)))
    hint = f"cuarl config show --keys {','.join(filter(None, found)) or 'all'}"
    if len(found) == 1:
        what, where = next(iter(found.values()))
        return ConfigError(what, where=where, hint=hint)
    listed = [f"{what} at {where}" for what, where in found.values()]
    return ConfigError(_listing(listed, "values are wrong"), hint=hint)


def _listing(lines: Sequence[str], title: str) -> str:
    shown = [f"  {line}" for line in lines[:MOST_ERRORS]]
    more = [f"  and {len(lines) - MOST_ERRORS} more"] if len(lines) > MOST_ERRORS else []
    return "\n".join([f"{len(lines)} {title}", *shown, *more])
