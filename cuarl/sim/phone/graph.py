"""The map of pages: which page opens which, and where each setting can be changed, read from the declared effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Any

from cuarl.sim.device.memory import remember
from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Effect, dialog_of, opens, writes
from cuarl.sim.phone import layers
from cuarl.sim.phone.apps import MODULES, build, home_of
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.records import Notification
from cuarl.sim.phone.registry import Screen
from cuarl.sim.phone.world import PROFILES, Ui, World

FAR = 1_000
AT_ONCE = 50
"""Pages of a map that are looked at in one go, some milliseconds."""
LOOK = Look()
NOTIFICATIONS = (Notification("clock", ""),)
# the same objects in every map, so that what pages show is known from one to the next


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
        """Pages where ``path`` can be changed.

        Those that write it, else those that write a list or record around it.
        """
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


@remember(1024)
def _found(screen: Screen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pages that a page opens, and the state paths that its widgets write."""
    shown = controls((*screen.top, *screen.body, *screen.bottom))
    pages: dict[str, None] = {}
    paths = dict.fromkeys(control.path for control in shown if isinstance(control, w.Slider | w.Field))
    for effect in effects(screen):
        page = opens(effect)
        if page and not page.startswith(("app/", "layer/")):
            pages[page] = None
        paths.update(dict.fromkeys(path for path, _ in writes(effect)))
    return tuple(pages), tuple(paths)


def page_graph(world: World) -> PageGraph:
    """The map of a device; the same for worlds that differ only in what their switches say."""
    survey = _survey(_Shape(_shape(world), world))
    while survey.unseen:
        survey.look(AT_ONCE)
    return survey.graph


def surveyed(world: World) -> Generator[None, None, None]:
    """Draw the map of a device, ``AT_ONCE`` pages in each part, between which others can have their turn."""
    survey = _survey(_Shape(_shape(world), world))
    while survey.unseen:
        survey.look(AT_ONCE)
        yield


@dataclass(frozen=True, slots=True)
class _Shape:
    key: tuple[Any, ...]
    world: World = field(compare=False, hash=False)


def _shape(world: World) -> tuple[Any, ...]:
    """What decides which pages there are."""
    s = world.state
    return (
        tuple(a.key for a in s.apps if a.installed),
        s.system.developer_options,
        s.network.wifi.saved,
        s.network.wifi.available,
        s.network.wifi.connected,
        s.network.bluetooth.paired,
        s.location.enabled,
        s.privacy.camera_access,
        s.privacy.mic_access,
        tuple((c.name, c.phone, c.starred) for c in s.contacts),
        tuple((t.to, t.archived) for t in s.messages),
        tuple(n.archived for n in s.notes),
        tuple(f.path for f in s.files),
        tuple(e.day for e in s.events),
        tuple((m.archived, m.starred, m.to, m.draft) for m in s.mails),
        tuple((p.album, p.favourite) for p in s.media.photos),
        s.media.recording,
        tuple(a.minutes for a in s.clock.alarms),
        s.clock.timer.running,
        s.clock.stopwatch.running,
        s.browser.bookmarks,
        s.phone.calls,
        s.phone.blocked,
        s.maps.saved,
        s.weather,
        s.store.pending,
        s.instagram.liked,
        s.facebook.liked,
    )


class _Survey:
    """A map that is being drawn, by whoever needs it: ``graph`` is complete when no page is ``unseen``."""

    def __init__(self, world: World) -> None:
        world = replace(world, ui=Ui(), look=LOOK, profile=PROFILES["small"]).put("notifications.items", NOTIFICATIONS)
        for switch in ("network.wifi.enabled", "network.bluetooth.enabled"):
            world = world.put(switch, True)
        self.graph = PageGraph()
        self.unseen = deque(home_of(a.key) for a in world.state.apps if a.installed and a.key in MODULES)
        self._world = world
        self._lock = Lock()

    def look(self, pages: int) -> None:
        """Look at the next ``pages`` pages; after the last one at the layers."""
        with self._lock:
            for page in islice(tuple(self.unseen), pages):
                self._look_at(page)
                self.unseen.popleft()

    def _look_at(self, page: str) -> None:
        if page not in self.graph.edges:
            self.graph.edges[page], paths = _found(build(self._world, page))
            self._note(page, paths)
            self.unseen.extend(self.graph.edges[page])
        if len(self.unseen) == 1:
            for layer in ("shade", "quick"):
                self._note(f"layer/{layer}", _written(layer_controls(self._world, layer)))

    def _note(self, place: str, paths: Iterable[str]) -> None:
        for path in paths:
            self.graph.writers.setdefault(path, []).append(place)


@lru_cache(maxsize=64)
def _survey(shape: _Shape) -> _Survey:
    return _Survey(shape.world)


def _written(found: Iterable[w.Control]) -> Iterator[str]:
    for control in found:
        yield from [control.path] if isinstance(control, w.Slider) else (path for path, _ in writes(control.on_tap))


def layer_controls(world: World, layer: str) -> Iterator[w.Control]:
    """Controls of the notification shade or of quick settings."""
    spots = layers.shade(world) if layer == "shade" else layers.quick(world)
    for spot in spots:
        if isinstance(spot.widget, w.Control):
            yield spot.widget
