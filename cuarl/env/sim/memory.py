"""Remembering results of pure functions of big immutable values by identity, without hashing them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

A = TypeVar("A")
B = TypeVar("B")
Parts = tuple[object, ...]


class Remembering(Protocol):
    """A decorator that keeps a function's type."""

    def __call__(self, function: Callable[[A], B]) -> Callable[[A], B]:
        """Decorate."""
        ...


def remember(size: int, parts: Callable[[Any], Parts] | None = None) -> Remembering:
    """Keep the ``size`` newest results of a function of one argument.

    Arguments are the same if they are one object, or with ``parts``, if all these are: name all that the result depends on.
    """

    def decorate(function: Callable[[A], B]) -> Callable[[A], B]:
        kept: OrderedDict[tuple[int, ...], tuple[Parts, B]] = OrderedDict()

        @wraps(function)
        def recall(argument: A) -> B:
            values = (argument,) if parts is None else parts(argument)
            key = tuple(map(id, values))
            found = kept.get(key)
            if found is not None:
                return found[1]
            result = function(argument)
            kept[key] = (values, result)  # holding the values keeps their ids from being used again
            if len(kept) > size:
                kept.popitem(last=False)
            return result

        return recall

    return decorate
