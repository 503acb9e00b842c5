"""Typed trees of frozen dataclasses addressed by dotted paths, with structural sharing.

A path names dataclass fields and, inside a tuple, items: by their ``key`` field where they have one
(``apps.chrome.installed``), else by position (``contacts.0.name``). Writing copies only the nodes along the path.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from cuarl.sim.device.memory import CACHES

Node = TypeVar("Node")


@lru_cache(maxsize=4096)
def parts(path: str) -> tuple[str, ...]:
    """Split a dotted path."""
    return tuple(path.split("."))


def get(tree: Any, path: str) -> Any:
    """Value at ``path``. Raises KeyError naming the first part that does not exist."""
    node = tree
    for part in parts(path):
        node = _child(node, part)
    return node


def put(tree: Node, path: str, value: Any) -> Node:
    """The same tree with ``value`` at ``path``; the tree itself if nothing changes. Raises KeyError."""
    return typing.cast(Node, _put(tree, parts(path), value))


def as_mapping(node: Any) -> Any:
    """The tree as nested mappings, lists and scalars; a tuple of keyed items becomes a mapping by key."""
    if hasattr(node, "__dataclass_fields__"):
        return {name: as_mapping(getattr(node, name)) for name in node.__dataclass_fields__}
    if isinstance(node, tuple):
        if node and hasattr(node[0], "key"):
            return {item.key: as_mapping(item) for item in node}
        return [as_mapping(item) for item in node]
    return node


@lru_cache(maxsize=256)
def field_names(cls: Any) -> tuple[str, ...]:
    """Names of a dataclass's fields, in order."""
    return tuple(f.name for f in dataclasses.fields(cls))


@lru_cache(maxsize=256)
def field_types(cls: Any) -> Mapping[str, Any]:
    """Resolved annotations of a dataclass."""
    return typing.get_type_hints(cls)


def convert(hint: Any, value: Any) -> Any:
    """Turn plain data (from a task file) into what a field annotated ``hint`` holds. Raises TypeError if it can't.

    Booleans are not integers here, whole numbers are not texts, and lists of mappings become tuples of records.
    """
    if type(value) is hint:  # most values: texts, numbers and truth values, which need no looking into
        return value
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in typing.get_args(hint):
            return None
        return convert(next(a for a in typing.get_args(hint) if a is not type(None)), value)
    if origin is typing.Literal:
        if value in typing.get_args(hint):
            return value
        raise TypeError(f"{value!r} is none of {', '.join(map(repr, typing.get_args(hint)))}")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{value!r} is not a list")
        return tuple(convert(typing.get_args(hint)[0], item) for item in value)
    if dataclasses.is_dataclass(hint):
        return _record(typing.cast(type, hint), value)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise TypeError(f"{value!r} is not of type {getattr(hint, '__name__', hint)}")
    return value


def put_plain(tree: Node, path: str, value: Any) -> Node:
    """Like ``put`` for plain data, checked against the annotations. Raises KeyError or TypeError."""
    head, _, last = path.rpartition(".")
    parent = get(tree, head) if head else tree
    if hasattr(parent, "__dataclass_fields__"):
        cls: Any = type(parent)
        hint = field_types(cls).get(last)
        if hint is None:
            raise KeyError(last)
        return put(tree, path, convert(hint, value))
    old = get(tree, path)
    return put(tree, path, convert(type(old), value))


def _record(cls: type, value: Any) -> Any:
    if isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is not a mapping of {', '.join(field_names(cls))}")
    hints = field_types(cls)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise TypeError(f"{cls.__name__} has no field {unknown[0]!r}; it has {', '.join(hints)}")
    return cls(**{name: convert(hints[name], item) for name, item in value.items()})


def _child(node: Any, part: str) -> Any:
    if isinstance(node, tuple):
        return node[_position(node, part)]
    if part in getattr(node, "__dataclass_fields__", ()):
        return getattr(node, part)
    raise KeyError(part)


def _position(items: tuple[Any, ...], part: str) -> int:
    if items and hasattr(items[0], "key"):
        for i, item in enumerate(items):
            if item.key == part:
                return i
    elif part.isdigit() and int(part) < len(items):
        return int(part)
    raise KeyError(part)


def _put(node: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        if type(node) is type(value) and node == value:
            return node
        return sys.intern(value) if type(value) is str else value
    old = _child(node, path[0])
    new = _put(old, path[1:], value)
    if new is old:
        return node
    if isinstance(node, tuple):
        i = _position(node, path[0])
        return _shared(tuple, (*node[:i], new, *node[i + 1 :]))
    cls: Any = type(node)
    return _shared(cls, tuple([new if name == path[0] else getattr(node, name) for name in field_names(cls)]))


KNOWN_NODES = 8192
_NODES: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
CACHES.append(_NODES)


def _shared(cls: Any, values: tuple[Any, ...]) -> Any:
    """The node of a class with these values, the same object for the same ones.

    So a tree that comes back to what it was (a switch that is used twice) is known again by its identity, which is what
    results of pure functions are remembered by.
    """
    key = (cls, *map(id, values))
    node = _NODES.pop(key, None)
    if node is None:
        node = values if cls is tuple else cls(**dict(zip(field_names(cls), values, strict=True)))
    _NODES[key] = node  # the node holds its values, which keeps their ids from being used again
    if len(_NODES) > KNOWN_NODES:
        _NODES.popitem(last=False)
    return node
