"""Configurations that runs of earlier versions recorded, whose fields were all at the top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.config.keys import keys
from cuarl.config.unions import UNIONS, Union


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values where they stand now. What belonged to records of other types had no effect, and is left out."""
    found: dict[str, Any] = {
        name: value for name, value in values.items() if name not in keys() or "." not in keys()[name].path
    }
    for name, union in UNIONS.items():
        if isinstance(found.get(name, ""), str):
            found[name] = {"type": found.get(name) or _implied(union, values)}
    for name, value in values.items():
        key = keys().get(name)
        if key is not None and "." in key.path:
            union_name, _, inner = key.path.partition(".")
            if found[union_name]["type"] in key.owners:
                found[union_name].setdefault(inner, value)
    return found


def _implied(union: Union, values: Mapping[str, Any]) -> str:
    """The type that was meant where there was no field for it."""
    for type_ in union.types():
        record = union.record(type_)
        if any(values.get(record.flag_name(type_, inner)) is not None for inner in record.implied_by):
            return type_
    return union.default
