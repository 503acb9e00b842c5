"""The map of pages: which page opens which, and where each setting can be changed, read from the declared effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from cuarl.env.sim import layers
from cuarl.env.sim.apps import MODULES, build, home_of
from cuarl.env.sim.kit import widgets as w
from cuarl.env.sim.kit.effects import Effect, dialog_of, opens, writes
from cuarl.env.sim.look import Look
from cuarl.env.sim.records import Notification
from cuarl.env.sim.registry import Screen
from cuarl.env.sim.world import PROFILES, Ui, World

FAR = 1_000


@dataclass
class PageGraph:
    """Edges between pages and the pages that write each path."""

    edges: dict[str, tuple[str, ...]] = field(default_factory=dict)
    writers: dict[str, list[str]] = field(default_factory=dict)
    """Pages by the path that they write, in the order in which a search from the apps' first pages finds them."""
    _distances: dict[str, dict[str, int]] = field(default_factory=dict)

    def distance(self, start: str, goal: str) -> int:
        """Pages to open on the way; ``FAR`` if there is no way."""
        return self.distances(goal).get(start, FAR)

    def distances(self, goal: str) -> dict[str, int]:
        """Distance to ``goal`` from every page that leads there."""
        if goal not in self._distances:
            reverse: dict[str, list[str]] = {}
            for page, nexts in self.edges.items():
                for following in nexts:
                    reverse.setdefault(following, []).append(page)
            found, queue = {goal: 0}, deque([goal])
            while queue:
                page = queue.popleft()
                for before in reverse.get(page, ()):
                    if before not in found:
                        found[before] = found[page] + 1
                        queue.append(before)
            self._distances[goal] = found
        return self._distances[goal]

    def pages_for(self, path: str) -> tuple[str, ...]:
        """Pages where ``path`` can be changed: those that write it, else those that write a list or record around it."""
        while path:
            if path in self.writers:
                return tuple(self.writers[path])
            path = path.rpartition(".")[0]
        return ()


def controls(widgets: tuple[w.Widget, ...]) -> Iterator[w.Control]:
    """All controls among widgets, those in containers and on rows too."""
    for widget in widgets:
        if isinstance(widget, w.HBox | w.Grid):
            yield from controls(widget.children)
        elif isinstance(widget, w.Control):
            yield widget
            if isinstance(widget, w.Row) and widget.switch:
                yield widget.switch


def effects(screen: Screen) -> Iterator[Effect]:
    """All effects of a page that taps have, those of its dialogs and menus too."""
    everything = (*screen.top, *screen.body, *screen.bottom, *screen.actions, *((screen.fab,) if screen.fab else ()))
    pending: list[Effect | None] = []
    for control in controls(everything):
        pending.append(control.on_tap)
        if isinstance(control, w.Field):
            pending.append(control.submit)
    pending += [option.effect for option in screen.menu]
    while pending:
        effect = pending.pop(0)
        if effect is None:
            continue
        yield effect
        box = dialog_of(effect)
        if box:
            pending += [option.effect for option in (*box.options, *box.buttons)]


def bound_paths(screen: Screen) -> Iterator[str]:
    """State paths that a page's widgets write."""
    for control in controls((*screen.top, *screen.body, *screen.bottom)):
        if isinstance(control, w.Slider | w.Field):
            yield control.path
    for effect in effects(screen):
        for path, _ in writes(effect):
            yield path


def page_graph(world: World) -> PageGraph:
    """The map of a device; the same for worlds that differ only in what their switches say."""
    return _page_graph(_Shape(_shape(world), world))


@dataclass(frozen=True, slots=True)
class _Shape:
    key: tuple[Any, ...]
    world: World = field(compare=False, hash=False)


def _shape(world: World) -> tuple[Any, ...]:
    """What decides which pages there are."""
    s = world.state
    return (
        tuple(a.key for a in s.apps if a.installed), s.system.developer_options, s.network.wifi.saved,
        s.network.wifi.available, s.network.wifi.connected, s.network.bluetooth.paired, s.location.enabled,
        s.privacy.camera_access, s.privacy.mic_access,
        tuple((c.name, c.phone, c.starred) for c in s.contacts), tuple((t.to, t.archived) for t in s.messages),
        tuple(n.archived for n in s.notes), tuple(f.path for f in s.files), tuple(e.day for e in s.events),
        tuple((m.archived, m.starred, m.to, m.draft) for m in s.mails),
        tuple((p.album, p.favourite) for p in s.media.photos), s.media.recording,
        tuple(a.minutes for a in s.clock.alarms), s.clock.timer.running, s.clock.stopwatch.running, s.browser.bookmarks,
        s.phone.calls, s.phone.blocked, s.maps.saved, s.weather, s.store.pending, s.instagram.liked, s.facebook.liked,
    )  # fmt: skip


@lru_cache(maxsize=64)
def _page_graph(shape: _Shape) -> PageGraph:
    world = replace(shape.world, ui=Ui(), look=Look(), profile=PROFILES["small"])
    world = world.put("notifications.items", (Notification("clock", ""),))
    for switch in ("network.wifi.enabled", "network.bluetooth.enabled"):
        world = world.put(switch, True)
    graph = PageGraph()
    queue = deque(home_of(a.key) for a in world.state.apps if a.installed and a.key in MODULES)
    while queue:
        page = queue.popleft()
        if page in graph.edges:
            continue
        screen = build(world, page)
        found = [opens(effect) for effect in effects(screen)]
        graph.edges[page] = tuple(dict.fromkeys(p for p in found if p and not p.startswith(("app/", "layer/"))))
        for path in dict.fromkeys(bound_paths(screen)):
            graph.writers.setdefault(path, []).append(page)
        queue.extend(graph.edges[page])
    for layer in ("shade", "quick"):
        for control in layer_controls(world, layer):
            paths = [control.path] if isinstance(control, w.Slider) else [path for path, _ in writes(control.on_tap)]
            for path in paths:
                graph.writers.setdefault(path, []).append(f"layer/{layer}")
    return graph


def layer_controls(world: World, layer: str) -> Iterator[w.Control]:
    """Controls of the notification shade or of quick settings."""
    spots = layers.shade(world) if layer == "shade" else layers.quick(world)
    for spot in spots:
        if isinstance(spot.widget, w.Control):
            yield spot.widget
