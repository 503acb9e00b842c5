"""A small immutable mapping, for what worlds hold by name."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bag:
    """A small immutable mapping of text keys."""

    items: tuple[tuple[str, Any], ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``."""
        for name, value in self.items:
            if name == key:
                return value
        return default

    @property
    def key(self) -> Hashable:
        """The items by value and type, or the bag itself by identity where a value can't be hashed."""
        key = tuple([(name, type(value), value) for name, value in self.items])
        try:
            hash(key)
        except TypeError:  # a task may preset a list
            return id(self)
        return key

    def put(self, key: str, value: Any) -> Bag:
        """A copy with ``key`` set."""
        return Bag((*((n, v) for n, v in self.items if n != key), (key, value)))

    def without(self, key: str) -> Bag:
        """A copy without ``key``."""
        return Bag(tuple((n, v) for n, v in self.items if n != key))

    def drop(self, prefix: str) -> Bag:
        """A copy without the keys that start with ``prefix``."""
        return Bag(tuple((n, v) for n, v in self.items if not n.startswith(prefix)))
