"""What sort of value a field holds, read off its annotation: for flags, for parsing and for help."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class Kind:
    """The sort of value of one field."""

    base: type
    """``bool``, ``int``, ``float`` or ``str``; the type of the items where ``many``."""
    optional: bool = False
    """Whether the field may be unset (None)."""
    many: bool = False
    """Whether it is a list."""
    choices: tuple[str, ...] = ()
    """The only values, where they can be listed."""

    @property
    def name(self) -> str:
        """The kind in words, as tables show it."""
        text = (
            " | ".join(self.choices) or {str: "text", int: "integer", float: "number", bool: "true | false"}[self.base]
        )
        return f"list of {text}" if self.many else text


def kind_of(field: FieldInfo) -> Kind:
    """The kind of a field; raises TypeError for an annotation that a flag could not carry."""
    return _kind(field.annotation)


def _kind(annotation: Any, *, optional: bool = False, many: bool = False) -> Kind:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(args[0], optional=optional, many=many)
    if origin in (Union, types.UnionType):
        rest = [arg for arg in args if arg is not type(None)]
        if len(rest) == 1:
            return _kind(rest[0], optional=len(rest) < len(args), many=many)
    if origin is tuple and args[1:] == (...,):
        return _kind(args[0], optional=optional, many=True)
    if origin is Literal:
        return Kind(str, optional, many, tuple(args))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):  # named by its type
        return Kind(str, optional, many)
    if annotation in (bool, int, float, str):
        return Kind(annotation, optional, many)
    raise TypeError(f"a field of type {annotation} has no command-line form")
