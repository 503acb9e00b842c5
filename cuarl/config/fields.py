"""What the records of a configuration are made of. This module is light: every backend's options import it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from cuarl.config.kinds import kind_of
from cuarl.types import Record

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig

Share = Annotated[float, Field(ge=0, le=1)]


def split_words(value: Any) -> Any:
    """Accept ``a,b`` for a list of words."""
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, str) for item in items):
        return value
    return tuple(word.strip() for item in items for word in item.split(",") if word.strip())


def _selectors(value: Any) -> Any:
    """Accept one selector for a list of them, and source objects as objects or as text (kept as canonical JSON)."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"broken JSON: {error}") from error
    if isinstance(value, list | tuple):
        return tuple(selector for item in value for selector in _selectors(item))
    return (json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value,)


def _table(value: Any) -> Any:
    """Accept a mapping for its canonical JSON."""
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value


def _workers(value: Any) -> Any:
    """Accept a number for its digits and ``none`` for no value, and refuse what names no workers."""
    text = str(value) if isinstance(value, int) else value
    if text == "none":
        return None
    if isinstance(text, str) and not _WORKERS.fullmatch(text):
        raise ValueError(f'"{text}" is neither a number of workers, nor ray, ray://HOST:PORT, 8@ray or none')
    return text


_WORKERS = re.compile(r"[1-9]\d*|([1-9]\d*@)?ray(://[^/@\s]+:\d+)?")
Workers = Annotated[str | None, BeforeValidator(_workers)]
Words = Annotated[tuple[str, ...], BeforeValidator(split_words)]
Trackers = Annotated[tuple[Literal["wandb", "tensorboard", "mlflow", "trackio"], ...], BeforeValidator(split_words)]
Table = Annotated[str, BeforeValidator(_table)]
Selectors = Annotated[tuple[str, ...], BeforeValidator(_selectors)]


class Fields(Record):
    """One panel of experiment fields."""

    model_config = ConfigDict(allow_inf_nan=False)

    panel: ClassVar[str]

    @field_validator("*", mode="before")
    @classmethod
    def _boolean_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and kind_of(cls.model_fields[info.field_name or ""]).base is not bool:
            raise ValueError(f"{str(value).lower()} is neither a number nor text; put text in quotes")
        return value


class Choice(Fields):
    """One of several records that are told apart by their ``type``."""

    # of some thirty a run has four, and only those need what checks their values
    model_config = ConfigDict(defer_build=True)

    panel = ""

    type: str
    """Which one it is."""

    bare: ClassVar[bool] = False
    """Whether flags are named by their field alone; else the type stands before it: ``--browser-contexts``."""
    flags: ClassVar[Mapping[str, str]] = {}
    """Fields whose flag has a name of its own, with underscores."""
    implied_by: ClassVar[frozenset[str]] = frozenset()
    """Fields that mean this type where none is given."""

    @classmethod
    def flag_name(cls, type_: str, field: str) -> str:
        """What the flag of a field is called, with underscores."""
        return cls.flags.get(field) or (field if cls.bare else f"{type_.replace('-', '_')}_{field}")


class EnvOptions(Choice):
    """The options of one environment.

    A backend's own are a subclass called ``Options`` in its package's ``options.py``.
    """

    judges: ClassVar[bool] = False
    """Whether its own verdict counts, so that cuarl looks for no side effects."""
    scripted: ClassVar[bool] = True
    """Whether agents that ask no policy can act in it."""
    capacity: ClassVar[frozenset[str]] = frozenset()
    """Fields that say how many, where and how long to wait, and not what an episode is."""

    @property
    def describes(self) -> bool:
        """Whether the policy describes what it acts on, and something else finds the point."""
        return False

    def idle(self) -> Iterator[tuple[str, str]]:
        """Keys that another field of this record leaves without effect, each with the reason."""
        yield from ()

    def problems(self, config: ExperimentConfig) -> Iterator[str]:
        """What of this record can't be honoured together with the rest, one sentence each."""
        yield from ()
