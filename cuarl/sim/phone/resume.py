"""Where a solution goes on from a state that is not on its way: an episode that somebody else played so far.

The way from the start is worked out once, as a track of worlds with the line of the plan that is due in each. A state
that stands on it goes on there. Any other goes on from the moment that differs least in what the device remembers, of
those from which the way can be begun wherever one is: before a line that opens a page, and after the plan. What differs
is undone first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuarl.sim.phone.operate import holds
from cuarl.sim.phone.report import state_mapping
from cuarl.sim.phone.route import is_at
from cuarl.sim.phone.state import DERIVED, VOLATILE
from cuarl.sim.phone.world import World
from cuarl.tasks.check import ANSWER
from cuarl.tasks.paths import MISSING, Change, changes, covers, leaves, lookup
from cuarl.tasks.task import Check, TaskInstance

ANYWHERE = ("open", "set")
"""Words of lines that can be begun from any state."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A world on the way, and the position in the plan of the line that is due in it."""

    world: World
    line: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where to go on, and what must be undone before that."""

    line: int
    undo: tuple[Check, ...] = ()
    place: str = ""
    """Page to be on first, where the line can't be begun from anywhere."""


def resumed(task: TaskInstance, track: Sequence[Moment], world: World, passed: int) -> Resumed:
    """Where the solution of a task goes on in ``world``, no further than the plan's position ``passed``."""
    allowed = [moment for moment in track if moment.line <= passed]
    for moment in reversed(allowed):
        if _same_screen(moment.world, world) and not (
            _told_apart(task, moment.world, world) or list(_differences(task, moment.world, world))
        ):
            return Resumed(moment.line)
    begins = [moment for moment in allowed if can_begin(task, moment.line)] or allowed[:1]
    found = [(tuple(_differences(task, moment.world, world)), moment) for moment in reversed(begins)]
    undo, nearest = min(found, key=lambda one: len(one[0]) + _told_apart(task, one[1].world, world))
    place = "" if can_begin(task, nearest.line) else nearest.world.ui.page
    return Resumed(nearest.line, undo, place)


def _told_apart(task: TaskInstance, wanted: World, world: World) -> int:
    """How many of the checks on the state hold in one of two worlds only."""
    checks = [check for check in task.checks if check.path != ANSWER and not check.path.startswith("ui.")]
    return sum(holds(wanted, check) != holds(world, check) for check in checks)


def can_begin(task: TaskInstance, line: int) -> bool:
    """Whether the plan can go on with a line wherever the user is."""
    return line >= len(task.plan) or any(word in task.plan[line] for word in ANYWHERE)


def gate(task: TaskInstance, world: World, line: int, answered: bool) -> int:
    """The first line from ``line`` on that can't be left out, as it is there for what the user sees or says.

    That is an answer, unless it was given, or a page to look at that is not shown.
    """
    for at in range(line, len(task.plan)):
        here = task.plan[at]
        if "answer" in here and not answered:
            return at
        if _is_look(task, at) and not is_at(world, str(here["open"])):
            return at
    return len(task.plan)


def _is_look(task: TaskInstance, at: int) -> bool:
    """Whether a line opens a page on which nothing is done."""
    following = task.plan[at + 1] if at + 1 < len(task.plan) else {"open": ""}
    return "open" in task.plan[at] and "open" in following and any(c.path != ANSWER for c in task.checks)


def _same_screen(a: World, b: World) -> bool:
    one, other = a.ui, b.ui
    return (one.page, one.overlay, one.dialog, one.form) == (other.page, other.overlay, other.dialog, other.form)


def _differences(task: TaskInstance, wanted: World, world: World) -> Iterator[Check]:
    """What must be so again for ``world`` to remember what ``wanted`` does, less what the task leaves open."""
    if wanted.state is world.state:
        return
    spared = (*task.allow, *VOLATILE, *DERIVED, *world.ui.derived)
    before, after = state_mapping(wanted), state_mapping(world)
    for change in changes(before, after):
        for leaf in leaves(change):
            if any(covers(glob, leaf) for glob in spared) or _is_asked(task, leaf):
                continue
            yield _undone(change, leaf, before)


def _is_asked(task: TaskInstance, leaf: str) -> bool:
    """Whether a check on this very value will see to it."""
    return any(check.op not in ("has", "lacks") and covers(check.path, leaf) for check in task.checks)


def _undone(change: Change, leaf: str, before: Mapping[str, Any]) -> Check:
    if change.before is MISSING:
        if isinstance(change.after, dict):
            return Check(path=str(change.container), op="lacks", value=change.after)
        return Check(path=str(change.container or leaf), op="not_contains", value=change.after)
    if change.after is MISSING:
        return Check(path=str(change.container or leaf), op="has", value=change.before)
    return Check(path=leaf, value=lookup(before, leaf))
