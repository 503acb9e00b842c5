"""Values from several places become one configuration's: the last one given wins, and each knows whose it is.

Where a layer names a record's type, its values are meant for that type: those of another one are errors, unless they
are what that one has anyway, or a preset's for the default environment where another is chosen. Values without a type
are for the type that holds in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cuarl.config.fields import Choice
from cuarl.config.keys import Key, at, keys, moved
from cuarl.config.schema import ExperimentConfig
from cuarl.config.unions import ENV, UNIONS
from cuarl.suggest import did_you_mean

FIELDS = ExperimentConfig.model_fields
PRESET = "preset "
"""How sources begin that are a preset."""
_WHOLE = "*"
"""Stands for the field of a record where its value is none."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value at one place."""

    path: str
    value: Any
    source: str
    owners: tuple[str, ...] = ()
    """The types of record that it is meant for; empty for any."""


@dataclass(slots=True)
class Settled:
    """What all layers say together."""

    values: dict[str, Any] = field(default_factory=dict)
    """By field; of a record, a mapping with its type."""
    sources: dict[str, str] = field(default_factory=dict)
    """By path."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """What can't be taken, and where it stands."""


def flat(values: Mapping[str, Any], source: Callable[[str], str]) -> Iterator[Given]:
    """The values of one layer by path; ``source`` says where a path was given."""
    for given, value in values.items():
        name = given.removesuffix(".type") if given.removesuffix(".type") in UNIONS else given
        inner = _fields(value) if name in UNIONS else None
        if inner is None:
            yield Given(f"{name}.{_WHOLE}" if name in UNIONS else name, value, source(name))
            continue
        owners = (inner["type"],) if isinstance(inner.get("type"), str) else ()
        for key, one in inner.items():
            path = name if key == "type" else f"{name}.{key}"
            yield Given(path, one, source(path), () if key == "type" else owners)


def _fields(value: Any) -> Mapping[str, Any] | None:
    """What is set of a record; None for what is no record."""
    if isinstance(value, Choice):
        return {"type": value.type, **{name: getattr(value, name) for name in value.model_fields_set}}
    if isinstance(value, str):
        return {"type": value}
    return value if isinstance(value, Mapping) else None


def of_key(key: Key, value: Any, source: str) -> Iterator[Given]:
    """The value of a flag."""
    if key.path in UNIONS:
        yield from flat({key.path: value}, lambda _: source)
    else:
        yield Given(key.path, value, source, key.owners)


def settle(given: Iterable[Given]) -> Settled:
    """Merge layers, from the weakest to the strongest. Lists are replaced, never joined."""
    layers = list(given)
    settled = Settled()
    records = {name: _type(name, layers, settled) for name in UNIONS}
    for one in layers:
        name, dot, inner = one.path.partition(".")
        if one.path in UNIONS:
            continue
        if (not dot and name in FIELDS) or (name in UNIONS and inner == _WHOLE):
            settled.values[name], settled.sources[name] = one.value, one.source
        elif name in UNIONS:
            if (record := records[name]) is not None:
                _take(one, inner, record, settled)
        else:
            settled.problems.append((_unknown(one.path), one.source))
    return settled


def _type(name: str, layers: Iterable[Given], settled: Settled) -> tuple[str, type[Choice]] | None:
    """The type of record that holds in the end, and its class."""
    chosen = [(place, one.value, one.source) for place, one in enumerate(layers) if one.path == name]
    place, type_, source = chosen[-1] if chosen else (-1, UNIONS[name].default, "default")
    if not source.startswith("-"):  # what was said outright is not overruled
        for one in list(layers)[place + 1 :]:
            type_, source = _implied(name, one) or (type_, source)
    settled.sources[name] = source
    settled.values[name] = {"type": type_}
    try:
        return type_, UNIONS[name].record(str(type_))
    except ValueError as error:
        settled.problems.append((str(error), settled.sources[name]))
        return None


def _implied(union: str, one: Given) -> tuple[str, str] | None:
    """The type that a value means without saying it, and its source."""
    name, _, inner = one.path.partition(".")
    if name != union or one.value is None:
        return None
    types = one.owners or UNIONS[union].types()
    found = [type_ for type_ in types if inner in UNIONS[union].record(type_).implied_by]
    return (found[0], one.source) if found else None


def _take(one: Given, inner: str, record: tuple[str, type[Choice]], settled: Settled) -> None:
    """A value of a record, unless it is meant for another type or for none."""
    union, _, _ = one.path.partition(".")
    type_, fields = record
    # types that share an option mean the same by it
    shared = {owner for key in at(one.path) if set(key.owners) & set(one.owners) for owner in key.owners}
    if (not one.owners or type_ in {*one.owners, *shared}) and inner in fields.model_fields:
        settled.values[union][inner], settled.sources[one.path] = one.value, one.source
        return
    others = [key for key in at(one.path) if not one.owners or set(key.owners) & set(one.owners)]
    if any(key.field.default == one.value for key in others):
        return
    # a preset for a model is for the default environment only until another is chosen
    if one.source.startswith(PRESET) and one.owners == (ENV.default,) and union == ENV.name:
        return
    if others or (one.owners and type_ not in one.owners):
        whose = " and ".join(dict.fromkeys(owner for key in others for owner in key.owners) or one.owners)
        settled.problems.append(
            (f"{one.path} has no effect with {union} {type_}: it is an option of {whose}; leave it out", one.source)
        )
        return
    known = [f"{union}.{name}" for name in fields.model_fields]
    settled.problems.append((f'unknown key "{one.path}"{did_you_mean(one.path, known)}', one.source))


def _unknown(name: str) -> str:
    return moved(name) or f'unknown key "{name}"{did_you_mean(name, [*FIELDS, *(key.path for key in keys().values())])}'
