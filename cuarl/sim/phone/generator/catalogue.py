"""What can be set and opened on the phone, read from its pages: switches, choices, sliders, the pages themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Dialog, Dismiss, Put, Toggle, dialog_of, flat
from cuarl.sim.phone.apps import build, home_of
from cuarl.sim.phone.graph import controls, page_graph
from cuarl.sim.phone.registry import Screen
from cuarl.sim.phone.world import World

DEVELOPER = "system.developer_options"
DRAWN = (
    "contacts",
    "notes",
    "messages",
    "mails",
    "files",
    "events",
    "clock",
    "media",
    "music.songs",
    "ui",
    "browser",
    "phone.dialed",
    "calculator",
    "music.current",
    "music.playing",
    "store.pending",
    "phone.in_call",
)
"""Paths below which lies what is drawn for each task, or what apps keep while they are used: nothing to set."""
OF_APPS = ("settings/app", "settings/app_permissions")
"""Pages that exist for each app."""
UNFIT = ("network.airplane_mode", DEVELOPER, "system.language", "system.use_24h")
"""Settings that switch others, or change how others are written."""
LIST_OF_APPS = "settings/app_notifications"
"""A page of the same switches that the apps' own pages have."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One control that sets one path."""

    kind: Literal["switch", "choice", "level"]
    app: str
    page: str
    title: str
    """As drawn at the top of the page."""
    label: str
    path: str
    steps: int
    """Taps from the first page of the app until it is set."""
    options: tuple[tuple[str, Any], ...] = ()
    """Texts and values of a choice."""
    low: int = 0
    high: int = 100
    about: str = ""
    """Key of the app that it is about, on the pages that exist for each app."""
    common: bool = False
    """Whether another setting has the same label, so that the page must be named with it."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page that has a name of its own."""

    app: str
    id: str
    title: str
    steps: int
    """Taps from the first page of the app."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All settings and pages, in the order in which a search from the apps' first pages finds them."""

    settings: tuple[Setting, ...]
    pages: tuple[Page, ...]
    apps: dict[str, str]
    """Names of the apps that have an icon, by key."""
    packages: dict[str, str]
    removable: tuple[str, ...]
    """Keys of the apps that can be uninstalled."""


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """What the phone offers with developer options and all radios on."""
    world = World()
    for path in (DEVELOPER, "network.wifi.enabled", "network.bluetooth.enabled"):
        world = world.put(path, True)
    apps = [app for app in world.state.apps if app.icon]
    settings = list(_settings(world))
    paths = defaultdict(set)
    for one in settings:
        if not one.about:
            paths[one.label].add(one.path)
    return Catalogue(
        tuple(replace(one, common=len(paths[one.label]) > 1) for one in settings),
        tuple(_pages(world)),
        {app.key: app.name for app in apps},
        {app.key: app.package for app in apps},
        tuple(app.key for app in apps if not app.system),
    )


def _settings(world: World) -> Iterator[Setting]:
    for page in page_graph(world).edges:
        name, _, about = page.partition(":")
        if name != LIST_OF_APPS and (not about or name in OF_APPS):
            yield from _on_page(world, page, about)


def _on_page(world: World, page: str, about: str) -> Iterator[Setting]:
    app, screen, known = page.partition("/")[0], build(world, page), set()
    near = page_graph(world).distance(home_of(app), page)
    for control in controls((*screen.top, *screen.body, *screen.bottom)):
        found = _setting(control)
        if found is None or found["path"] in known or not _is_setting(found["path"]):
            continue
        known.add(found["path"])
        found = _all_options(found, screen)
        if found["kind"] != "choice" or len(found["options"]) > 1:
            taps = 2 if dialog_of(control.on_tap) and found["kind"] == "choice" else 1
            yield Setting(app=app, page=page, title=screen.title, steps=near + taps, about=about, **found)


def _is_setting(path: str) -> bool:
    return path not in UNFIT and not any(path == drawn or path.startswith(f"{drawn}.") for drawn in DRAWN)


def _setting(control: w.Control) -> dict[str, Any] | None:
    """What a control sets, if it is one path and nothing else."""
    if isinstance(control, w.Slider):
        return {
            "kind": "level",
            "label": control.label,
            "path": control.path,
            "low": control.low,
            "high": control.high,
        }
    if isinstance(control, w.Row | w.Switch) and isinstance(control.on_tap, Toggle):
        return {"kind": "switch", "label": control.label, "path": control.on_tap.path}
    if not isinstance(control, w.Row):
        return None
    if control.trailing == "radio" and isinstance(control.on_tap, Put):
        return {"kind": "choice", "label": "", "path": control.on_tap.path}
    box = dialog_of(control.on_tap)
    return _chosen(control, box) if box else None


def _chosen(row: w.Row, box: Dialog) -> dict[str, Any] | None:
    """What a row sets by way of a dialog: a switch that asks first, or one of several values."""
    parts = [(option.label, part) for option in (*box.options, *box.buttons) for part in flat(option.effect)]
    puts = [(label, part) for label, part in parts if isinstance(part, Put)]
    if len({put.path for _, put in puts}) != 1 or any(not isinstance(part, Put | Dismiss) for _, part in parts):
        return None
    found = {"label": row.label, "path": puts[0][1].path}
    if row.trailing == "switch":
        return {**found, "kind": "switch"}
    return {**found, "kind": "choice", "options": tuple((label, put.value) for label, put in puts)}


def _all_options(found: dict[str, Any], screen: Screen) -> dict[str, Any]:
    """A page of radio buttons is one choice, named like the page."""
    if found["label"] or found["kind"] != "choice":
        return found
    rows = [row for row in controls(screen.body) if isinstance(row, w.Row) and isinstance(row.on_tap, Put)]
    options = tuple((row.label, row.on_tap.value) for row in rows if isinstance(row.on_tap, Put))
    return {**found, "label": screen.title, "options": tuple(sorted(options))}


def _pages(world: World) -> Iterator[Page]:
    """Pages whose titles tell them apart within their app; forms and records of content have none."""
    graph = page_graph(world)
    found = []
    for page in graph.edges:
        app = page.partition("/")[0]
        if ":" not in page and page != home_of(app) and not page.endswith(("/new", "/call", "/block", "/time", "/day")):
            found.append(Page(app, page, build(world, page).title, graph.distance(home_of(app), page)))
    counts = Counter((page.app, page.title) for page in found)
    homes = {(page.app, build(world, home_of(page.app)).title) for page in found}
    yield from (page for page in found if counts[page.app, page.title] == 1 and (page.app, page.title) not in homes)
