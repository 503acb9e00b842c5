"""The oracle: the next action of a solution, worked out from the task's checks, its plan and what is on the screen.

Nothing is scripted. For a check that does not hold, the planner looks for a control whose declared effect would make it
hold (tried out on the immutable world), uses it, or goes one step towards a page that has one. What can't be told from
the checks (which button saves a form) a task says in its ``plan``: see ``script.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cuarl.sim.device.element import Element
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Do, Effect, flat
from cuarl.sim.kit.scene import Placed
from cuarl.sim.phone import rules
from cuarl.sim.phone.apps import build
from cuarl.sim.phone.device import step
from cuarl.sim.phone.elements import usable
from cuarl.sim.phone.graph import controls, layer_controls, page_graph
from cuarl.sim.phone.operate import best_price, copies, holds, outcomes, tap, targets, touches, use
from cuarl.sim.phone.places import place_of
from cuarl.sim.phone.resume import Moment, gate, resumed
from cuarl.sim.phone.route import is_at, leads_to, scroll_until, towards_pages
from cuarl.sim.phone.script import run
from cuarl.sim.phone.world import World
from cuarl.tasks.check import ANSWER, evaluate
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Action, Answer, Button, Click, Finish, OpenApp, Scroll, Swipe

MOST_TURNS = 150
"""Of a solution, so that one that goes in circles ends."""
MOST_TO_AN_ICON = 8
"""Turns that finding an app's icon takes."""
DEPTH = 3
"""How many form fields may stand between a check and the field that is typed into."""

HIDES_PAGES = ("network.wifi.enabled", "network.bluetooth.enabled", "system.developer_options")
"""Switches without which some controls are not there."""


class Planner:
    """Plans one episode of a task that begins in a world; without it, one that nobody but the planner plays.

    ``opens``: apps are opened by their names, in place of finding their icons.
    """

    def __init__(self, task: TaskInstance, start: World | None = None, *, opens: bool = False) -> None:
        self.task, self._opens = task, opens
        self.answer: str | None = None
        self._line = 0
        """Position in the task's plan."""
        self._pending: Action | None = None
        """An action that completes the present line once it is carried out."""
        self._start = start
        self._told: Action | None = None
        self._strayed = False
        """Whether something else was done than what was told."""
        self._track: tuple[Moment, ...] | None = None

    def next(self, world: World) -> Action:
        """The next action of a solution; ``Finish(success=False)`` if there seems to be none."""
        action = self._resume(world) if self._strayed and self._start else self._next(world)
        self._told = self._by_name(world, action) if self._opens and not self._strayed else action
        return self._told

    def _by_name(self, world: World, action: Action) -> Action:
        """Opening an app by its name, if ``action`` begins the way to its icon and the app is all that it leads to."""
        line, pending, first, ahead = self._line, self._pending, action, world
        app = None
        for _ in range(MOST_TO_AN_ICON):
            if self._pending is not None or not isinstance(action, Click | Swipe | Scroll | Button):
                break
            after = step(ahead, action)
            if after is ahead or (after.ui.app and (after.ui.overlay or after.ui.app == world.ui.app)):
                break
            if after.ui.app:
                app = after.app(after.ui.app)
                break
            ahead, action = after, self._next(after)
        self._line, self._pending = line, pending
        return OpenApp(name=app.name) if app and app.icon else first

    def _resume(self, world: World) -> Action:
        """The next action from a state to which somebody else came."""
        if self._track is None:
            self._track = tuple(_track(self.task, self._start or world))
        passed = gate(self.task, world, self._line, self._is_answered())
        found = resumed(self.task, self._track, world, passed)
        for check in found.undo:
            if not holds(world, check):
                action = toward(world, check)
                return action or Finish(success=False, message=f"no way to undo {check.path}")
        if found.place and not is_at(world, found.place):
            return as_action(leads_to(world, found.place)) or Button(name="back")
        self._line, self._strayed = found.line, False
        return self._next(world)

    def _is_answered(self) -> bool:
        asked = [check for check in self.task.checks if check.path == ANSWER]
        return self.answer is not None and all(evaluate(check, {}, self.answer).passed for check in asked)

    def _next(self, world: World) -> Action:
        self._pending = None
        box = world.ui.dialog
        if box and box.kind == "popup":
            return as_action(leads_to(world, "home")) or Button(name="back")
        while self._line < len(self.task.plan):
            action, completes = run(world, self.task.plan[self._line], toward)
            if action is not None:
                self._pending = action if completes else None
                return action
            self._line += 1
        for check in sorted(self.task.checks, key=_rank):
            if check.path == ANSWER:
                if not evaluate(check, {}, self.answer).passed:
                    return Answer(text=str(check.value))
            elif not holds(world, check):
                return toward(world, check) or Finish(success=False, message=f"no way to {check.path}")
        return Finish(success=True)

    def stray(self) -> None:
        """Note that the device is not where the planner's own way led to."""
        self._strayed = True

    def acted(self, action: Action) -> None:
        """Note that the environment carried ``action`` out."""
        if isinstance(action, Answer):
            self.answer = action.text
        self._strayed = self._strayed or action != self._told
        if self._pending is not None and action == self._pending:
            self._line += 1
        self._pending = None


def _track(task: TaskInstance, start: World) -> Iterator[Moment]:
    """The way of a solution from the start to its end."""
    planner, world = Planner(task), start
    for _ in range(MOST_TURNS):
        action = planner.next(world)
        yield Moment(world, planner._line)
        if isinstance(action, Finish):
            return
        if not isinstance(action, Answer):
            world = step(world, action)
        planner.acted(action)


def _rank(check: Check) -> int:
    """State first, then where the user ends up, then the answer."""
    return 2 if check.path == ANSWER else 1 if check.path.startswith("ui.") else 0


def toward(world: World, check: Check, depth: int = 0) -> Action | None:
    """One action towards a check that does not hold; None if there is no way."""
    place = place_of(world, check)
    if place:
        return as_action(leads_to(world, place))
    paths = targets(world, check)
    return (
        _use_best(world, check, paths)
        or _fill_form(world, check, paths, depth)
        or _use_any(world, paths)
        or _scroll(world, check, paths)
        or _elsewhere(world, check, paths)
        or _unlock(world, check, paths, depth)
    )


def _use_best(world: World, check: Check, paths: tuple[str, ...]) -> Action | None:
    """Use the visible control that makes the check hold and changes least besides."""
    prices = [(best_price(world, control, check, paths), i, item) for i, (item, control) in enumerate(_visible(world))]
    priced = [(cost, i, item) for cost, i, item in prices if cost is not None]
    if not priced:
        return None
    _, _, item = min(priced, key=lambda found: found[:2])
    return use(world, item, check)


def _fill_form(world: World, check: Check, paths: tuple[str, ...], depth: int) -> Action | None:
    """Type into the form field that a visible button (or the dialog behind it) copies to the path."""
    if depth >= DEPTH:
        return None
    for item, control in _visible(world):
        copy = copies(control.on_tap, paths)
        if copy is None:
            continue
        source = check.model_copy(update={"path": copy.source})
        if holds(world, source):
            return tap(item)
        return (
            _use_best(world, source, (copy.source,))
            or _fill_form(world, source, (copy.source,), depth + 1)
            or tap(item)
        )
    return None


def _use_any(world: World, paths: tuple[str, ...]) -> Action | None:
    """Tap a visible control whose action may write the path, though one tap is not enough."""
    for item, control in _visible(world):
        if _may_write(control, paths):
            return tap(item)
    return None


def _may_write(control: w.Control, paths: tuple[str, ...]) -> bool:
    return control.enabled and any(touches(e, paths) and not _foreseen(e) for e in outcomes(control.on_tap))


def _foreseen(effect: Effect) -> bool:
    """Whether trying an effect out told all there is to know: anything but app logic behind a ``Do``."""
    return not any(isinstance(part, Do) for part in flat(effect))


def _scroll(world: World, check: Check, paths: tuple[str, ...]) -> Action | None:
    """Scroll to a control of this page that is out of sight."""
    if world.ui.dialog or world.ui.overlay or not world.ui.app:
        return None
    found = scroll_until(world, lambda spot: _promises(world, spot.widget, check, paths))
    return as_action(found) if found else None


def _promises(world: World, widget: w.Widget, check: Check, paths: tuple[str, ...]) -> bool:
    return isinstance(widget, w.Control) and _promise(world, widget, check, paths) is not None


def _promise(world: World, control: w.Control, check: Check, paths: tuple[str, ...]) -> int | None:
    """How cheaply a control makes the check hold, or 99 if it may after several taps or with a form filled in."""
    cost = best_price(world, control, check, paths)
    if cost is not None:
        return cost
    return 99 if copies(control.on_tap, paths) or _may_write(control, paths) else None


def _elsewhere(world: World, check: Check, paths: tuple[str, ...]) -> Action | None:
    """Go one step towards the page whose controls make the check hold most cheaply."""
    graph = page_graph(world)
    pages = dict.fromkeys(page for path in paths for page in graph.pages_for(path))
    best: dict[int, list[str]] = {}
    for page in pages:
        costs = [
            c for control in _page_controls(world, page) if (c := _promise(world, control, check, paths)) is not None
        ]
        if costs:
            best.setdefault(min(costs), []).append(page)
    for cost in sorted(best):
        step = towards_pages(world, tuple(p for p in best[cost] if p != world.ui.page or world.ui.overlay))
        if step is not None:
            return as_action(step)
    return Button(name="back") if world.ui.dialog else None


def _unlock(world: World, check: Check, paths: tuple[str, ...], depth: int) -> Action | None:
    """Switch on what hides the control: the radios, or the developer options."""
    for switch in HIDES_PAGES if depth < DEPTH else ():
        if world.get(switch) or switch in paths:
            continue
        wider = rules.put(world, switch, True)
        pages = dict.fromkeys(page for path in paths for page in page_graph(wider).pages_for(path))
        if any(_promises(wider, c, check, paths) for page in pages for c in _page_controls(wider, page)):
            return toward(world, Check(path=switch, value=True), depth + 1)
    return None


def _page_controls(world: World, page: str) -> Iterable[w.Control]:
    if page.startswith("layer/"):
        return layer_controls(world, page.partition("/")[2])
    screen = build(world, page)
    widgets = (*screen.top, *screen.body, *screen.bottom, *screen.actions, *((screen.fab,) if screen.fab else ()))
    options = tuple(w.Row(o.label, o.effect) for o in screen.menu)
    return controls((*widgets, *options))


def _visible(world: World) -> list[tuple[Placed, w.Control]]:
    return [(item, item.widget) for item in usable(world) if isinstance(item.widget, w.Control)]


def as_action(step: object) -> Action | None:
    """An element becomes a tap on it."""
    if isinstance(step, Element):
        return Click(x=step.centre[0], y=step.centre[1])
    return step  # type: ignore[return-value]
