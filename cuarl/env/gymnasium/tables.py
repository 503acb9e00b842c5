"""Which table of actions an environment gets: the user's, or the one that its action space suggests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.env.foreign.mapping import Table, read_table
from cuarl.errors import ConfigError

AUTO = "auto"
MOST_BUTTONS = 32
_GRID = re.compile(r"grid(?: (\d+)x(\d+))?")
_HINT = "give a table, such as '{key Left: 0, click: [$u, $v]}'; see docs/guides/gymnasium.md"


def check_actions(given: str | Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for what is no way of naming actions. What depends on the action space shows later."""
    if isinstance(given, Mapping) or not _is_word(given):
        read_table(given, where)


def table_for(
    given: str | Mapping[str, Any], space: Mapping[str, Any], names: Sequence[str] | None, where: str
) -> Table:
    """The table for an action space as the worker tells it. Raises ConfigError for one that does not fit.

    ``given`` is a table, ``auto``, ``buttons`` (with labels), ``grid`` (with ROWSxCOLUMNS) or ``point``.
    """
    if isinstance(given, Mapping) or not _is_word(given):
        return read_table(given, where)
    word = given.split()[0]
    if word == AUTO:
        word = {"Discrete": "buttons", "MultiDiscrete": "grid", "Box": "point"}.get(space["type"], AUTO)
    if word == "buttons":
        return _buttons(space, given.split()[1:] or names, where)
    if word == "grid":
        return _grid(space, given, where)
    if word == "point" and space["type"] == "Box" and "low" in space:
        return Table(place=lambda u, v: [_between(space, 0, u), _between(space, 1, v)])
    raise ConfigError(f"clicks can't be told to an action space of type {space['type']}", where=where, hint=_HINT)


def _is_word(given: str) -> bool:
    return given in (AUTO, "point") or given.split()[:1] == ["buttons"] or _GRID.fullmatch(given) is not None


def _buttons(space: Mapping[str, Any], labels: Sequence[str] | None, where: str) -> Table:
    if space["type"] != "Discrete":
        raise ConfigError(f"buttons are for a Discrete space, not {space['type']}", where=where, hint=_HINT)
    count, start = space["n"], space["start"]
    if count > MOST_BUTTONS:
        raise ConfigError(
            f"{count} actions are too many for buttons", where=where, hint="grid ROWSxCOLUMNS, or a table of actions"
        )
    labels = labels if labels is not None else [str(start + i) for i in range(count)]
    if len(labels) != count or len(set(labels)) != count:
        raise ConfigError(f"there are {count} actions and {len(set(labels))} labels", where=where, hint="one for each")
    return Table(buttons={label: start + i for i, label in enumerate(labels)})


def _grid(space: Mapping[str, Any], given: str, where: str) -> Table:
    """Cells of the picture by row and column, row by row where they have one number."""
    found = _GRID.fullmatch(given)
    size = (int(found[1]), int(found[2])) if found and found[1] else None
    if space["type"] == "MultiDiscrete" and len(space["nvec"]) == 2:
        rows, columns = space["nvec"]
        if size is None or size == (rows, columns):
            return Table(place=lambda u, v: [int(v * rows), int(u * columns)])
    if space["type"] == "Discrete" and size is not None and size[0] * size[1] == space["n"]:
        rows, columns, start = *size, space["start"]
        return Table(place=lambda u, v: start + int(v * rows) * columns + int(u * columns))
    raise ConfigError(f"{given} does not fit the action space {dict(space)}", where=where, hint=_HINT)


def _between(space: Mapping[str, Any], axis: int, share: float) -> float:
    low, high = space["low"][axis], space["high"][axis]
    return float(low + share * (high - low))
