"""Finding one's way: the first step of a shortest way from what is shown to a page, an app, a layer or a setting."""

from __future__ import annotations

from collections.abc import Callable

from cuarl.sim.device.element import Element
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, dialog_of, opens, writes
from cuarl.sim.kit.scene import Region, Spot
from cuarl.sim.phone import launcher
from cuarl.sim.phone.apps import home_of
from cuarl.sim.phone.elements import elements
from cuarl.sim.phone.graph import FAR, PageGraph, page_graph
from cuarl.sim.phone.view import body_spots, view
from cuarl.sim.phone.world import World
from cuarl.types import Button, Scroll, Swipe

Step = Element | Scroll | Swipe | Button
Wanted = Callable[[Spot], bool]


def leads_to(world: World, target: str) -> Step | None:
    """What to use next on the way to ``target``: a visible element, or a scroll, swipe or button.

    ``target`` is a page id (``settings/wifi``), ``app/KEY``, ``layer/NAME`` (``drawer``, ``recents``, ``shade``,
    ``quick``, ``folder:NAME``), ``home`` (``home/1`` is the second page) or a state path (``network.nfc``), for which
    the element that changes it is the end of the way. None if one is there already, or if there is no way.
    """
    if world.ui.dialog:
        return _through_dialog(world, target)
    if target == "home" or target.startswith("home/"):
        return _to_home(world, int(target.partition("/")[2] or 0))
    if target.startswith("layer/"):
        return _to_layer(world, target.partition("/")[2])
    if target.startswith("app/"):
        return _to_app(world, target.partition("/")[2])
    if "/" in target:
        return None if world.ui.page == target and not world.ui.overlay else _to_page(world, target)
    return _to_path(world, target)


def is_at(world: World, target: str) -> bool:
    """Whether a place that is no state path is reached."""
    ui = world.ui
    if ui.dialog:
        return False
    kind, _, name = target.partition("/")
    if kind == "home":
        return not ui.app and not ui.overlay and ui.home_page == int(name or 0)
    if kind == "layer":
        return ui.overlay == name
    if kind == "app":
        return ui.app == name and not ui.overlay
    return ui.page == target and not ui.overlay


def _to_home(world: World, page: int) -> Step | None:
    ui = world.ui
    if ui.app or ui.overlay:
        return _home_key(world)
    return None if ui.home_page == page else _turn(world, page)


def _turn(world: World, page: int) -> Swipe:
    """Swipe towards a page of the launcher."""
    width, height = world.profile.width_px, world.profile.height_px
    left, right = width // 5, width * 4 // 5
    x, x2 = (right, left) if page > world.ui.home_page else (left, right)
    return Swipe(x=x, y=height // 2, x2=x2, y2=height // 2)


def _through_dialog(world: World, target: str) -> Step | None:
    """An option of the open dialog that is on the way, else the way out of it."""
    found = next((e for e in elements(world) if target in (e.writes, e.opens)), None)
    if found or ("/" in target and target.partition("/")[0] in ("app", "layer", "home")):
        return found or _out_of_dialog(world)
    graph = page_graph(world)
    return _option_to(world, graph, (target,) if "/" in target else graph.pages_for(target)) or _out_of_dialog(world)


def _out_of_dialog(world: World) -> Step | None:
    box = world.ui.dialog
    if box and box.kind == "popup":
        return next((e for e in elements(world) if e.role == "button" and e.label == box.buttons[-1].label), None)
    return Button(name="back")


def _option_to(world: World, graph: PageGraph, goals: tuple[str, ...]) -> Element | None:
    """An option of the open dialog or menu that opens the next page on the way to one of some pages."""
    pages = {page for goal in goals for page in _next_pages(world, graph, goal)}
    return next((e for e in elements(world) if e.opens in pages), None)


def _to_layer(world: World, name: str) -> Step | None:
    ui = world.ui
    if ui.overlay == name:
        return None
    width, height = world.profile.width_px, world.profile.height_px
    if name == "recents":
        return next((e for e in elements(world) if e.label == "Recents"), Button(name="recents"))
    if name in ("shade", "quick"):
        if ui.overlay and not (name == "quick" and ui.overlay == "shade"):
            return Button(name="back")
        return Swipe(x=width // 2, y=2, x2=width // 2, y2=height // 2)
    if ui.app or ui.overlay:
        return _home_key(world)
    if name.startswith("folder:"):
        return next((e for e in elements(world) if e.opens == f"layer/{name}"), None)
    return _drawer_swipe(world)


def _drawer_swipe(world: World) -> Swipe:
    width, height = world.profile.width_px, world.profile.height_px
    return Swipe(x=width // 2, y=height * 6 // 10, x2=width // 2, y2=height * 2 // 10)


def _home_key(world: World) -> Step:
    return next((e for e in elements(world) if e.label == "Home" and e.role == "button"), Button(name="home"))


def _to_app(world: World, key: str) -> Step | None:
    ui = world.ui
    if ui.app == key and not ui.overlay:
        return None
    visible = next((e for e in elements(world) if e.opens == f"app/{key}"), None)
    if visible:
        return visible
    if ui.overlay == "drawer":
        return _scroll_to(world, "drawer:", launcher.drawer(world)[1], lambda s: _is_icon(s, key))
    if ui.app or ui.overlay:
        return _home_key(world)
    return _on_other_page(world, key) or _drawer_swipe(world)


def _is_icon(spot: Spot, key: str) -> bool:
    return isinstance(spot.widget, w.AppIcon) and spot.widget.app == key


def _on_other_page(world: World, key: str) -> Step | None:
    for i, page in enumerate(world.state.launcher.pages):
        for folder in page.folders:
            if key in folder.apps and i == world.ui.home_page:
                return next((e for e in elements(world) if e.opens == f"layer/folder:{folder.name}"), None)
        if key in page.apps and i != world.ui.home_page:
            return _turn(world, i)
    return None


def _to_page(world: World, page: str) -> Step | None:
    return towards_pages(world, (page,))


def towards_pages(world: World, pages: tuple[str, ...]) -> Step | None:
    """One step towards the nearest of some pages."""
    return _along(world, page_graph(world), pages)


def _to_path(world: World, path: str) -> Step | None:
    if not (world.ui.app and world.ui.overlay in ("drawer", "recents")):
        for element in elements(world):
            if changes(element, path):
                return element
    graph = page_graph(world)
    pages = graph.pages_for(path)
    if world.ui.page in pages and not world.ui.overlay:
        found = scroll_until(world, lambda s: _writes(s, path))
        if found:
            return found
    return _along(world, graph, tuple(p for p in pages if p != world.ui.page)) if pages else None


def changes(element: Element, path: str) -> bool:
    """Whether using an element changes ``path``, at once or in the dialog that it opens."""
    if element.role in ("slider", "field"):
        return element.writes == path
    if any(p == path for p, _ in writes(element.effect)):
        return True
    box = dialog_of(element.effect)
    options = (*box.options, *box.buttons) if box else ()
    return any(p == path for option in options for p, _ in writes(option.effect))


def _writes(spot: Spot, path: str) -> bool:
    widget = spot.widget
    if isinstance(widget, w.Slider | w.Field):
        return widget.path == path
    if not isinstance(widget, w.Control):
        return False
    box = dialog_of(widget.on_tap)
    options = (*box.options, *box.buttons) if box else ()
    found = [*writes(widget.on_tap), *(x for o in options for x in writes(o.effect))]
    return any(p == path for p, _ in found)


def _along(world: World, graph: PageGraph, goals: tuple[str, ...]) -> Step | None:
    """One step towards the nearest of some pages."""
    ui = world.ui
    goals = tuple(g for g in goals if not g.startswith("layer/")) or goals
    if not goals:
        return None
    if goals[0].startswith("layer/"):
        return _to_layer(world, goals[0].partition("/")[2])
    if ui.dialog:
        return _option_to(world, graph, goals) or _out_of_dialog(world)
    if ui.overlay:
        return Button(name="back") if ui.overlay != "drawer" else _to_app(world, goals[0].partition("/")[0])
    cost, kind, target = min((_plan(world, graph, g) for g in goals), key=lambda p: p[0])
    if cost >= FAR:
        return None
    if kind == "back":
        return next((e for e in elements(world) if e.label == "Navigate up"), Button(name="back"))
    return _to_app(world, target) if kind == "leave" else _forward(world, graph, target)


def _plan(world: World, graph: PageGraph, goal: str) -> tuple[int, str, str]:
    """Cost and kind of the cheapest way to a page, with the page (``forward``, ``back``) or app to ``leave`` for."""
    ui, home = world.ui, goal.partition("/")[0]
    ways: list[tuple[int, str, str]] = []
    if ui.app:
        cost, backs = _best_in_stack(graph, ui.stacks.get(ui.app), goal)
        ways.append((cost, "back" if backs else "forward", goal))
    started = [a.key for a in world.state.apps if a.installed and a.icon]
    keys = sorted(started, key=lambda key: key != home)
    for key in keys:
        stack = ui.stacks.get(key) or (home_of(key),)
        if key != ui.app:
            ways.append((_best_in_stack(graph, stack, goal)[0] + 2, "leave", key))
    return min(ways, key=lambda way: way[0])


def _best_in_stack(graph: PageGraph, stack: tuple[str, ...], goal: str) -> tuple[int, int]:
    """Cheapest cost to a page from an app's open pages, and how often to go back first."""
    costs = [(j + graph.distance(page, goal), j) for j, page in enumerate(reversed(stack))]
    return min(costs)


def _forward(world: World, graph: PageGraph, goal: str) -> Step | None:
    """The element on this page that opens the next one, or the menu that has it."""
    pages = _next_pages(world, graph, goal)
    for element in elements(world):
        if element.opens in pages or _offers(element.effect, pages):
            return element
    return scroll_until(world, lambda s: isinstance(s.widget, w.Control) and _leads(s.widget, pages))


def _next_pages(world: World, graph: PageGraph, goal: str) -> set[str]:
    """Pages that the shown one opens and that are one step nearer to the goal."""
    here = graph.distance(world.ui.page, goal)
    return {p for p in graph.edges.get(world.ui.page, ()) if graph.distance(p, goal) == here - 1}


def _leads(control: w.Control, pages: set[str]) -> bool:
    return opens(control.on_tap) in pages or _offers(control.on_tap, pages)


def _offers(effect: Effect | None, pages: set[str]) -> bool:
    """Whether an effect opens a dialog or menu with an option that opens one of the pages."""
    box = dialog_of(effect)
    return box is not None and any(opens(o.effect) in pages for o in (*box.options, *box.buttons))


def scroll_until(world: World, wanted: Wanted) -> Scroll | None:
    """A scroll of the shown page towards a widget that is out of sight; None if it has none, or none out of sight."""
    if world.ui.dialog or world.ui.overlay or not world.ui.app:
        return None
    return _scroll_to(world, f"page:{world.ui.page}", body_spots(world), wanted)


def _scroll_to(world: World, region_id: str, spots: list[Spot], wanted: Wanted) -> Scroll | None:
    """A scroll that brings the first spot that is wanted towards the middle of its region."""
    region = next((r for r in view(world).regions if r.id == region_id), None)
    spot = next((s for s in spots if wanted(s)), None)
    if region is None or spot is None:
        return None
    scale = world.profile.scale
    top = spots[0].y
    middle = spot.y - top + spot.height / 2
    seen = (region.box[3] - region.box[1]) / scale
    shift = min(max(0.0, middle - seen / 2), region.reach) - region.offset
    return scroll(region, shift, scale) if abs(shift) >= 1 else None


def scroll(region: Region, units: float, scale: float) -> Scroll:
    """A scroll action inside a region."""
    x, y = (region.box[0] + region.box[2]) // 2, (region.box[1] + region.box[3]) // 2
    amount = max(1, round(abs(units) * scale))
    return Scroll(x=x, y=y, direction="down" if units > 0 else "up", amount=amount)
