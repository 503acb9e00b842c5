"""Remembering results of pure functions of big immutable values by identity, without hashing them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
B = TypeVar("B")
Parts = tuple[object, ...]
Key = tuple[Hashable, ...]
CACHES: list[OrderedDict[Any, Any]] = []
"""Everything that is remembered here, whoever does."""


def forget() -> None:
    """Drop all of it: for tests, and for measuring what the first time costs."""
    for cache in CACHES:
        cache.clear()


def first_by_identity(first: object, *rest: Hashable) -> Key:
    """A key of ``remember``: the first argument counts as an object, the others by their values."""
    return id(first), *rest


class Remembering(Protocol):
    """A decorator that keeps a function's type."""

    def __call__(self, function: Callable[P, B]) -> Callable[P, B]:
        """Decorate."""
        ...


def remember(
    size: int, parts: Callable[..., Parts] | None = None, *, key: Callable[..., Key] | None = None
) -> Remembering:
    """Keep the ``size`` results of a function that were used last.

    Arguments are the same if they are the same objects, or with ``parts``, if all these are: name all that the result
    depends on. ``key`` makes the look-up key itself, of the ids of parts and of small values.
    """

    def decorate(function: Callable[P, B]) -> Callable[P, B]:
        kept: OrderedDict[Key, tuple[Parts, B]] = OrderedDict()
        CACHES.append(kept)

        @wraps(function)
        def recall(*arguments: Any, **named: Any) -> B:
            assert not named
            values = arguments if parts is None else parts(*arguments)
            sought = tuple(map(id, values)) if key is None else key(*arguments)
            found = kept.pop(sought, None)
            if found is None:
                # holding the values keeps their ids from being used again
                found = values, function(*arguments)  # type: ignore[call-arg]
            kept[sought] = found
            if len(kept) > size:
                kept.popitem(last=False)
            return found[1]

        return recall

    return decorate
