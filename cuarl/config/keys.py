"""Every key of a configuration: where it stands, whose it is, and what its flag is called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cuarl.config.fields import Choice, Fields
from cuarl.config.schema import PANELS, ExperimentConfig
from cuarl.config.unions import UNIONS


@dataclass(frozen=True, slots=True)
class Key:
    """A value that can be set."""

    name: str
    """What its flag is called, with underscores: ``browser_contexts``."""
    path: str
    """Where it stands: ``env.contexts``; for what tells records apart, the name of the field: ``env``."""
    field: FieldInfo
    record: type[Fields]
    """Whose field it is."""
    panel: str
    """The heading under which help shows it."""
    owners: tuple[str, ...] = ()
    """The types of record that have it; empty for what always is."""

    @property
    def flag(self) -> str:
        """The command-line flag."""
        return flag_of(self.name)

    @property
    def description(self) -> str:
        """What it means. The source is read for it, so ask only to show it."""
        return self.record.descriptions().get(self.path.rpartition(".")[2], "")


def flag_of(name: str) -> str:
    """The command-line flag of a name with underscores."""
    return "--" + name.replace("_", "-")


@cache
def keys() -> Mapping[str, Key]:
    """All keys by name, panel by panel, each with the options of the records in it that come with cuarl."""
    found: dict[str, Key] = {}
    for panel in PANELS:
        for name, field in panel.model_fields.items():
            found[name] = Key(name, name, field, panel, panel.panel)
        for name in (name for name in panel.model_fields if name in UNIONS):
            for key in (key for type_ in UNIONS[name].types() for key in keys_of(name, type_)):
                same = found.get(key.name)
                found[key.name] = _shared(same, key) if same else key
    return found


def _shared(one: Key, other: Key) -> Key:
    """A key that several types have."""
    return replace(one, owners=(*one.owners, *other.owners), panel=f"Options of {one.path.partition('.')[0]}")


def keys_of(union: str, type_: str) -> Iterator[Key]:
    """The keys of one type of record. Raises ValueError if there is none of that name."""
    record: type[Choice] = UNIONS[union].record(type_)
    for name, field in record.model_fields.items():
        if name != "type":
            yield Key(
                record.flag_name(type_, name), f"{union}.{name}", field, record, f"Options of {union} {type_}", (type_,)
            )


def home(key: Key) -> str:
    """The heading of the field that a key is, or whose record has it."""
    return keys()[key.path.partition(".")[0]].panel


def moved(name: str) -> str | None:
    """Where a key stands that is called like a flag, and stood at the top before; None if it is none."""
    key = keys().get(name)
    if key is None or "." not in key.path:
        return None
    union, _, inner = key.path.partition(".")
    written = f": {union}: {{type: {key.owners[0]}, {inner}: …}}" if len(key.owners) == 1 else ""
    return f'"{name}" is {key.path} now{written}'


def at(path: str) -> list[Key]:
    """The keys that stand at a path: several where records of different types have a field of one name."""
    return [key for key in keys().values() if key.path == path]


def paths(config: ExperimentConfig) -> Iterator[str]:
    """The paths of all that a configuration has, in the order of the schema."""
    for panel in PANELS:
        for name in panel.model_fields:
            yield name
            if name in UNIONS:
                yield from (f"{name}.{inner}" for inner in type(getattr(config, name)).model_fields if inner != "type")


def value_of(config: Any, path: str) -> Any:
    """The value at a path; of a record, its type."""
    name, _, inner = path.partition(".")
    value = getattr(config, name)
    return getattr(value, inner or "type") if isinstance(value, Choice) else value


def field_of(config: Any, path: str) -> FieldInfo:
    """The field at a path."""
    name, _, inner = path.partition(".")
    record: type[BaseModel] = type(getattr(config, name)) if inner else type(config)
    return record.model_fields[inner or name]


def default_of(config: Any, path: str) -> Any:
    """The default at a path; of a record, its type's."""
    return UNIONS[path].default if path in UNIONS else field_of(config, path).default


def names(given: Iterable[str]) -> list[str]:
    """Paths as flags call them, for messages about a command line."""
    return [next((key.flag for key in at(path)), path) for path in given]
