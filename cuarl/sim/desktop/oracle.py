"""The oracle: the next action of a solution, worked out from the task's checks, its plan and what is on the screen.

For a setting it looks for the page that can change it and for the control there that makes the check hold, tried out on
the immutable world; for windows it knows how each is opened, closed and sized. The rest a task says in its ``plan``:
``script.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from cuarl.sim.desktop import widgets as d
from cuarl.sim.desktop.apps.settings import PAGES
from cuarl.sim.desktop.device import slider_value
from cuarl.sim.desktop.elements import centre, elements, usable
from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.panel import APPLICATIONS
from cuarl.sim.desktop.reduce import apply, write
from cuarl.sim.desktop.registry import Context
from cuarl.sim.desktop.report import state_mapping
from cuarl.sim.desktop.route import clear_way, click, click_item, is_at, leads_to, scroll_to, to_window
from cuarl.sim.desktop.script import run, stuck
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.desktop.world import DesktopWorld, Window
from cuarl.sim.device.section import section_mapping
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, dialog_of, writes
from cuarl.sim.kit.scene import Placed
from cuarl.tasks.check import ANSWER, evaluate
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Action, Answer, Click, Finish, Key


class DesktopOracle:
    """Plans one episode of a task."""

    def __init__(self, task: TaskInstance) -> None:
        self.task = task
        self.answer: str | None = None
        self._line = 0
        """Position in the task's plan."""
        self._pending: Action | None = None
        """An action that completes the present line once it is carried out."""

    def next(self, world: DesktopWorld) -> Action:
        """The next action of a solution; ``Finish(success=False)`` if there seems to be none."""
        self._pending = None
        if world.ui.notice and not world.ui.notice.startswith("Downloaded"):
            return clear_way(world) or Key(keys=("Escape",))
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
                return toward(world, check) or stuck(check.path)
        return Finish(success=True)

    def acted(self, action: Action) -> None:
        """Note that the environment carried ``action`` out."""
        if isinstance(action, Answer):
            self.answer = action.text
        if self._pending is not None and action == self._pending:
            self._line += 1
        self._pending = None


def _rank(check: Check) -> int:
    """State first, then what is closed, what is open, and the answer."""
    return 3 if check.path == ANSWER else 0 if not check.path.startswith("ui.") else 1 if check.op == "lacks" else 2


def holds(world: DesktopWorld, check: Check) -> bool:
    """Whether a check holds in a world."""
    section = check.path.partition(".")[0]
    if section in DesktopState.__dataclass_fields__:
        # without the windows: a slider tries a hundred worlds, in each of which they would be laid out anew
        return evaluate(check, {section: section_mapping(getattr(world.state, section))}).passed
    return evaluate(check, state_mapping(world)).passed


def toward(world: DesktopWorld, check: Check) -> Action | None:
    """One action towards a check that does not hold; None if there is no way."""
    if check.path.startswith("ui."):
        return _toward_windows(world, check)
    return _use(world, check) or _to_page(world, check)


def _use(world: DesktopWorld, check: Check) -> Action | None:
    """Use a visible control of the settings, or an entry of the open menu, that makes the check hold."""
    for item in usable(world):
        control = item.widget
        if isinstance(control, w.Slider) and control.path == check.path:
            found = list(_slides(world, control, check, item))
            if found:
                return Click(x=found[len(found) // 2], y=item.visible[3] - (item.visible[3] - item.visible[1]) // 3)
        elif isinstance(control, w.Control) and control.enabled and _makes(world, control.on_tap, check):
            return click_item(item)
    return None


def _makes(world: DesktopWorld, effect: Effect | None, check: Check) -> bool:
    """Whether an effect, or an option of the menu that it opens, makes a check hold."""
    box = dialog_of(effect)
    if box is not None:
        return any(_makes(world, option.effect, check) for option in (*box.options, *box.buttons))
    paths = [path for path, _ in writes(effect)]
    return check.path in paths and holds(apply(world, effect), check)


def _slides(world: DesktopWorld, slider: w.Slider, check: Check, item: Placed) -> Iterator[int]:
    """Columns of pixels at which a click on a slider makes the check hold."""
    x0, x1 = item.box[0], item.box[2]
    last, passes = None, False
    for x in range(x0, x1):
        value = slider_value(world, slider, (x0, x1), x)
        if value != last:
            last, passes = value, holds(write(world, slider.path, value), check)
        if passes:
            yield x


def _to_page(world: DesktopWorld, check: Check) -> Action | None:
    """Go to the page of the settings that can change a path, and scroll to the control."""
    page = writers().get(check.path)
    if page is None:
        return None
    place = f"settings/{page}"
    if not is_at(world, place):
        return leads_to(world, place)
    top = world.focused
    return scroll_to(world, top, "body", lambda widget: check.path in paths_of(widget)) if top else None


def paths_of(widget: w.Widget) -> tuple[str, ...]:
    """State paths that using a widget changes, at once or in the menu that it opens."""
    if isinstance(widget, w.Slider):
        return (widget.path,)
    if not isinstance(widget, w.Control):
        return ()
    box = dialog_of(widget.on_tap)
    effects = [widget.on_tap, *(o.effect for o in ((*box.options, *box.buttons) if box else ()))]
    return tuple(path for effect in effects for path, _ in writes(effect))


@lru_cache(maxsize=1)
def writers() -> Mapping[str, str]:
    """The page of the settings on which each state path can be changed."""
    world = DesktopWorld(look=DesktopLook())
    found: dict[str, str] = {}
    for page, (_, _, build) in PAGES.items():
        for widget in build(Context(world, Window("settings-1", "settings", page))):
            for path in paths_of(widget):
                found.setdefault(path, page)
    return found


def _toward_windows(world: DesktopWorld, check: Check) -> Action | None:
    """Open, close, raise, minimise or maximise."""
    value: Any = check.value
    match check.path:
        case "ui.focused":
            return leads_to(world, str(value)) if value else _away(world)
        case "ui.page":
            return leads_to(world, f"{world.ui.windows[-1].app}/{value}") if world.ui.windows else None
        case "ui.menu":
            return _menu(world, str(value))
        case "ui.windows" if isinstance(value, Mapping) and "app" in value:
            return _window(world, check.op, value)
        case "ui.count":
            return _away(world, close=True)
    return None


def _menu(world: DesktopWorld, name: str) -> Action | None:
    label = "Applications" if name == APPLICATIONS else name.capitalize()
    found = next((e for e in elements(world) if e.label == label and e.role == "button"), None)
    return click(found) if found else clear_way(world)


def _away(world: DesktopWorld, *, close: bool = False) -> Action | None:
    """Minimise or close the topmost window."""
    return clear_way(world) or _press(world, "Close" if close else "Minimise")


def _window(world: DesktopWorld, op: str, wanted: Mapping[str, Any]) -> Action | None:
    """Towards a window with (for ``lacks``: no window with) some properties."""
    app = str(wanted["app"])
    if op == "lacks":
        window = next((x for x in world.ui.windows if x.app == app), None)
        return None if window is None else _raise(world, window) or _press(world, "Close")
    place = f"{app}/{wanted['page']}" if "page" in wanted else app
    sizes = {"minimised": "Minimise", "maximised": "Maximise"}
    if not is_at(world, place):
        return leads_to(world, place)
    top = world.focused
    for field, label in sizes.items():
        if top is not None and field in wanted and getattr(top, field) != wanted[field]:
            return _press(world, label if wanted[field] else "Restore")
    return None


def _raise(world: DesktopWorld, window: Window) -> Action | None:
    """Bring a window to the top; None if it is there."""
    return clear_way(world) or (None if window is world.focused else to_window(world, window))


def _press(world: DesktopWorld, label: str) -> Action | None:
    """Press a button of the topmost window's title bar."""
    found = [item for item in usable(world) if isinstance(item.widget, d.WindowButton) and item.widget.label == label]
    if not found:
        return None
    x, y = centre(found[-1])
    return Click(x=x, y=y)
