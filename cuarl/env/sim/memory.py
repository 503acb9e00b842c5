"""Remembering results of pure functions of big immutable values by identity, without hashing them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def remember(size: int) -> Callable[[Callable[[A], B]], Callable[[A], B]]:
    """Keep the ``size`` newest results of a function of one argument; the argument is known by ``is``."""

    def decorate(function: Callable[[A], B]) -> Callable[[A], B]:
        kept: OrderedDict[int, tuple[A, B]] = OrderedDict()

        @wraps(function)
        def recall(argument: A) -> B:
            found = kept.get(id(argument))
            if found is not None and found[0] is argument:
                return found[1]
            result = function(argument)
            kept[id(argument)] = (argument, result)  # holding the argument keeps its id from being used again
            if len(kept) > size:
                kept.popitem(last=False)
            return result

        return recall

    return decorate
