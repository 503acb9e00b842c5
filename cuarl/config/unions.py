"""Fields of a configuration that are one of several records: which types there are, how a value becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cuarl.config import backends
from cuarl.config.algorithms import ALGORITHMS
from cuarl.config.fields import Choice
from cuarl.config.learning import record_of
from cuarl.config.places import POLICIES, TRAINERS
from cuarl.suggest import did_you_mean


@dataclass(frozen=True, slots=True)
class Union:
    """One such field."""

    name: str
    default: str
    """The type where none is given."""
    types: Callable[[], tuple[str, ...]]
    """Those that come with cuarl; there may be more."""
    record: Callable[[str], type[Choice]]
    """The record of a type. Raises ValueError for a name that is none."""

    def usual(self) -> Any:
        """What the field is unless it is set."""
        return self.read(self.default)

    def read(self, value: Any) -> Choice:
        """The record of a name, or of a mapping with a ``type``. Raises ValueError."""
        if isinstance(value, Choice):
            return value
        given = {"type": value} if isinstance(value, str) else value
        if not isinstance(given, Mapping) or not isinstance(given.get("type", ""), str):
            raise ValueError(f"{value!r} is neither a name nor a mapping with a type")
        type_ = given.get("type", self.default)
        try:
            return self.record(type_).model_validate({**given, "type": type_})
        except ValidationError as error:
            wrong = [sentence(".".join(map(str, one["loc"][:1])), one) for one in error.errors()]
            raise ValueError("; ".join(wrong)) from error


def sentence(key: str, detail: ErrorDetails) -> str:
    """What is wrong with the value of a key."""
    message = detail["msg"].removeprefix("Value error, ")
    if not key:
        return message
    if detail["type"] == "extra_forbidden":
        return f"{key} is unknown"
    message = message.removeprefix("Input should be ").replace("a valid string", "text")
    if detail["type"] == "string_pattern_mismatch":
        message = message.removeprefix("String should ").replace("match pattern", "have the form of")
    verb = "" if detail["type"] == "value_error" else "must be "
    verb = "must " if message.startswith("have ") else verb
    return f"{key} {verb}{message} (got {detail['input']!r})" if verb else f"{key}: {message}"


def _named(what: str, records: Mapping[str, Any], make: Callable[[str], type[Choice]]) -> Callable[[str], type[Choice]]:
    def record(name: str) -> type[Choice]:
        if name not in records:
            raise ValueError(f'there is no {what} "{name}"{did_you_mean(name, records)}')
        return make(name)

    return record


ENV = Union("env", "sim", lambda: tuple(backends.BACKENDS), backends.options_of)
POLICY = Union("policy", "local", lambda: tuple(POLICIES), _named("policy", POLICIES, POLICIES.__getitem__))
TRAINER = Union("trainer", "local", lambda: tuple(TRAINERS), _named("trainer", TRAINERS, TRAINERS.__getitem__))
ALGORITHM = Union("algorithm", "grpo", lambda: tuple(ALGORITHMS), _named("algorithm", ALGORITHMS, record_of))

UNIONS: Mapping[str, Union] = {union.name: union for union in (ENV, POLICY, TRAINER, ALGORITHM)}
"""By the name of the field."""
