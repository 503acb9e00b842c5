"""Remembering what is worked out from a world by what of the world was read.

A page that shows the sound settings reads ``state.sound`` and little else, so it is the same page whatever happened to
the Wi-Fi. The first time, a function is handed a world that notes what is read from it; the result is good for every
world that has the same there, and since functions are pure, that is certain and nothing has to be declared.

The look, the screen and the sections of the state are the same if they are the same objects; what is in ``ui`` is
compared by value.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

from cuarl.sim.device.bag import Bag
from cuarl.sim.device.memory import CACHES
from cuarl.sim.phone.state import DeviceState
from cuarl.sim.phone.world import Ui, World

P = ParamSpec("P")
B = TypeVar("B")
Read = tuple[str, str]
"""A path of attributes from the world, and a key where it leads to a ``Bag`` of which one value was read."""
BAGS = ("stacks", "scroll", "form")
STATE = {name: (f"state.{name}", "") for name in DeviceState.__dataclass_fields__}
UI = {name: (f"ui.{name}", "") for name in Ui.__dataclass_fields__}
KNOWN_KINDS = 2048
MANY = 8
"""How many sets of reads are told apart of one kind at most."""


class _Notes:
    """What was read since ``read`` was last replaced."""

    __slots__ = ("read",)

    def __init__(self) -> None:
        self.read: dict[Read, None] = {}


class _NotedBag(Bag):
    __slots__ = ("bag", "notes", "path")
    bag: Bag
    notes: _Notes
    path: str

    def __init__(self, bag: Bag, path: str, notes: _Notes) -> None:
        object.__setattr__(self, "bag", bag)
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "notes", notes)

    def get(self, key: str, default: Any = None) -> Any:
        self.notes.read[self.path, key] = None
        return self.bag.get(key, default)

    def __getattribute__(self, name: str) -> Any:
        if name in ("items", "key"):
            notes: _Notes = object.__getattribute__(self, "notes")
            notes.read[object.__getattribute__(self, "path") + ".key", ""] = None
            return getattr(object.__getattribute__(self, "bag"), name)
        return object.__getattribute__(self, name)


class _NotedState(DeviceState):
    __slots__ = ("notes", "real")

    def __init__(self, real: DeviceState, notes: _Notes) -> None:
        object.__setattr__(self, "real", real)
        object.__setattr__(self, "notes", notes)

    def __getattribute__(self, name: str) -> Any:
        read = STATE.get(name)
        if read is None:
            return object.__getattribute__(self, name)
        object.__getattribute__(self, "notes").read[read] = None
        return getattr(object.__getattribute__(self, "real"), name)


class _NotedUi(Ui):
    __slots__ = ("notes", "real")

    def __init__(self, real: Ui, notes: _Notes) -> None:
        object.__setattr__(self, "real", real)
        object.__setattr__(self, "notes", notes)

    def __getattribute__(self, name: str) -> Any:
        read = UI.get(name)
        if read is None:
            return object.__getattribute__(self, name)
        value, notes = getattr(object.__getattribute__(self, "real"), name), object.__getattribute__(self, "notes")
        if name in BAGS:
            return _NotedBag(value, read[0], notes)
        notes.read[read] = None
        return value


class _NotedWorld(World):
    """A world that notes what is read from it; ``real`` is what it stands for."""

    __slots__ = ("notes", "real")
    notes: _Notes
    real: World

    def __init__(self, real: World) -> None:
        notes = _Notes()
        for name, value in (
            ("real", real),
            ("notes", notes),
            ("state", _NotedState(real.state, notes)),
            ("ui", _NotedUi(real.ui, notes)),
            ("look", real.look),
            ("profile", real.profile),
        ):
            object.__setattr__(self, name, value)


class _Reads:
    """A set of reads, and the key that it makes of a world."""

    def __init__(self, read: frozenset[Read]) -> None:
        self.read = dict.fromkeys(sorted(read))
        plain = [path for path, key in self.read if not key]
        same = [path for path in plain if path.startswith("state.") or path == "ui.dialog"]
        self.count = 2 + len(same)
        self.attributes = attrgetter("look", "profile", *same, *(path for path in plain if path not in same))
        self.bags = [(attrgetter(path), key) for path, key in self.read if key]

    def of(self, world: World) -> tuple[Hashable, tuple[object, ...]]:
        """The key of a world, and what must live for as long as the key may be known."""
        values = self.attributes(world)
        key = (self, *map(id, values[: self.count]), *values[self.count :])
        if self.bags:
            found = [bag(world).get(name) for bag, name in self.bags]
            key += tuple([(type(value), value) for value in found])
        return key, values


_reads = lru_cache(maxsize=KNOWN_KINDS)(_Reads)


def remember_reads(
    size: int, by: Callable[[World], Hashable] | None = None
) -> Callable[[Callable[Concatenate[World, P], B]], Callable[Concatenate[World, P], B]]:
    """Keep the ``size`` results of a function of a world that were used last, by what it read.

    Other arguments count by their values. ``by`` tells apart what reads different things (only for speed). Results are
    shared: don't change them.
    """

    def decorate(function: Callable[Concatenate[World, P], B]) -> Callable[Concatenate[World, P], B]:
        kept: OrderedDict[Hashable, tuple[object, B]] = OrderedDict()
        sets: OrderedDict[Hashable, list[_Reads]] = OrderedDict()
        CACHES.extend((kept, sets))

        @wraps(function)
        def recall(world: World, /, *rest: P.args, **named: P.kwargs) -> B:
            assert not named
            noting = world if isinstance(world, _NotedWorld) else None
            real = world if noting is None else noting.real
            kind = rest if by is None else (by(real), *rest)
            for reads in sets.get(kind, ()):
                found = _found(kept, (kind, reads.of(real)[0]))
                if found is not None:
                    if noting is not None:
                        noting.notes.read.update(reads.read)
                    return found[1]
            result, reads = _noted(function, noting or _NotedWorld(real), rest)
            key, values = reads.of(real)
            with contextlib.suppress(TypeError):
                kept[kind, key] = values, result
                _note_set(sets, kind, reads)
            if len(kept) > size:
                kept.popitem(last=False)
            return result

        return recall

    return decorate


def _found(kept: OrderedDict[Hashable, tuple[object, B]], key: Hashable) -> tuple[object, B] | None:
    try:
        found = kept.pop(key, None)
    except TypeError:  # a task may preset a list, which can't be a key
        return None
    if found is not None:
        kept[key] = found
    return found


def _noted(function: Callable[..., B], noting: _NotedWorld, rest: tuple[Any, ...]) -> tuple[B, _Reads]:
    """What a function makes of a world, and what it read; whoever called it counts as having read that, too."""
    notes = noting.notes
    outer, notes.read = notes.read, {}
    try:
        result = function(noting, *rest)
    finally:
        inner, notes.read = notes.read, outer
        outer.update(inner)
    return result, _reads(frozenset(inner))


def _note_set(sets: OrderedDict[Hashable, list[_Reads]], kind: Hashable, reads: _Reads) -> None:
    known = sets.setdefault(kind, [])
    if reads not in known:
        known.insert(0, reads)
        del known[MANY:]
        if len(sets) > KNOWN_KINDS:
            sets.popitem(last=False)
