"""The panel with its application menu, windows, tray and clock, and the icons on the desktop."""

from __future__ import annotations

from functools import lru_cache

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.apps.files.menus import icon_of
from cuarl.sim.desktop.apps.files.pane import TRASH, opening, title_of
from cuarl.sim.desktop.geometry import Rect, panel, work_area
from cuarl.sim.desktop.registry import APPS
from cuarl.sim.desktop.widgets import DeskIcon, PanelButton, Ruled, Task
from cuarl.sim.desktop.window_view import title_of_window
from cuarl.sim.desktop.world import DesktopWorld
from cuarl.sim.device.memory import remember
from cuarl.sim.device.order import permutation
from cuarl.sim.kit.effects import Dialog, Do, Effect, Launch, Open, Option, Show, Toggle
from cuarl.sim.kit.scene import Spot
from cuarl.sim.kit.style import font_px, text_width

START, TRAY = 26.0, 22.0
TASK_WIDTHS = {True: 84.0, False: 28.0}
ICON_WIDTH, ICON_HEIGHT = 62.0, 46.0
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def panel_spots(world: DesktopWorld) -> list[Spot]:
    """Everything on the panel, from left to right."""
    place, fixed = _fixed(world)
    menu, windows = world.ui.menu, sorted(world.ui.windows, key=lambda window: int(window.key.rpartition("-")[2]))
    opened = menu is not None and menu.name == APPLICATIONS
    start = PanelButton("Applications", Show(application_menu(world)), icon="apps", active=opened)
    top = world.focused
    entries = tuple((w.key, title_of_window(world, w), w.app, w is top, w.minimised) for w in windows)
    tasks = _tasks(entries, place, fixed[-1].x - 4, world.look.labelled_tasks)
    return [fixed[0], Spot(start, 1, place.y, START, place.height), *fixed[1:], *tasks]


def _panel_parts(world: DesktopWorld) -> tuple[object, ...]:
    return world.state, world.look, world.screen


@remember(64, _panel_parts)
def _fixed(world: DesktopWorld) -> tuple[Rect, list[Spot]]:
    """Where the panel is, and what is on it whatever windows there are; the leftmost status icon last."""
    place = panel(world)
    spots = [Spot(Ruled("bar", "bottom" if world.look.panel == "top" else "top"), *place)]
    place = Rect(place.x, place.y + (world.look.panel == "bottom"), place.width, place.height - 1)
    text = clock_text(world)
    width = text_width(text, font_px(world.style, 11.0)) / world.screen.scale + 13
    right = place.right - width
    spots.append(Spot(PanelButton(text, Show(_clock_menu(world)), text=text), right, place.y, width, place.height))
    for button in reversed(_tray(world)):
        right -= TRAY
        spots.append(Spot(button, right, place.y, TRAY, place.height))
    return place, spots


Entry = tuple[str, str, str, bool, bool]
"""Key, title and app of a window, and whether it is the topmost and minimised."""


@lru_cache(maxsize=512)
def _tasks(entries: tuple[Entry, ...], place: Rect, right: float, labelled: bool) -> tuple[Spot, ...]:
    """The entries of the windows."""
    left = START + 6
    width = min(TASK_WIDTHS[labelled], (right - left) / max(1, len(entries)))
    spots = []
    for i, (key, title, app, active, minimised) in enumerate(entries):
        entry = Task(
            title,
            Do("window.task", (key,)),
            Show(_window_menu(key)),
            app=app,
            active=active,
            minimised=minimised,
            labelled=labelled and width > 40,
            on_middle=Do("window.close", (key,)),
        )
        spots.append(Spot(entry, left + i * width, place.y, width, place.height))
    return tuple(spots)


def _window_menu(key: str) -> Dialog:
    names = (("Minimise", "minimise"), ("Maximise", "maximise"), ("Close", "close"))
    return Dialog("window", options=tuple(Option(n, Do(f"window.{a}", (key,))) for n, a in names), kind="menu")


APPLICATIONS = "applications"


def application_menu(world: DesktopWorld) -> Dialog:
    """All apps, in this desktop's own order."""
    return _application_menu(world.look.seed)


@lru_cache(maxsize=256)
def _application_menu(seed: int) -> Dialog:
    apps = list(APPS.values())
    order = permutation(seed, "applications", len(apps))
    return Dialog(APPLICATIONS, options=tuple(Option(apps[i].name, Launch(apps[i].key)) for i in order), kind="menu")


def _tray(world: DesktopWorld) -> list[PanelButton]:
    """Status icons, each with a menu."""
    state = world.state
    network, quiet = state.network, state.notifications.do_not_disturb
    online = "airplane" if network.airplane_mode else "wifi" if network.wifi else "network"
    connections = (
        _tick(world, "Wi-Fi", "network.wifi"),
        _tick(world, "Airplane mode", "network.airplane_mode"),
        _tick(world, "VPN", "network.vpn"),
        Option("Network settings", Open("settings/wifi")),
    )
    sounds = (_tick(world, "Mute", "sound.muted"), Option("Sound settings", Open("settings/sound")))
    charge = (Option(f"Battery {state.power.battery} %"), Option("Power settings", Open("settings/power")))
    notes = (
        _tick(world, "Do not disturb", "notifications.do_not_disturb"),
        Option("Notification settings", Open("settings/notifications")),
    )
    return [
        _status("Notifications", "dnd" if quiet else "bell", notes),
        _status("Network", online, connections),
        _status("Sound", "mute" if state.sound.muted else "volume", sounds),
        _status("Battery", "battery", charge),
    ]


def _status(label: str, icon: str, options: tuple[Option, ...]) -> PanelButton:
    return PanelButton(label, Show(Dialog(label.lower(), options=options, kind="menu")), icon=icon)


def _tick(world: DesktopWorld, label: str, path: str) -> Option:
    return Option(label, Toggle(path), bool(world.get(path)))


def clock_text(world: DesktopWorld) -> str:
    """The time, and as much of the date as the settings say."""
    look, settings = world.look, world.state.datetime
    hours, minutes = divmod(look.minutes, 60)
    seconds = ":00" if settings.show_seconds else ""
    text = f"{hours:02d}:{minutes:02d}{seconds}"
    if not settings.use_24h:
        text = f"{(hours - 1) % 12 + 1}:{minutes:02d}{seconds} {'AM' if hours < 12 else 'PM'}"
    date = f"{look.day} Jun " if settings.show_date else ""
    weekday = f"{DAYS[(look.day - 1) % 7]} " if settings.show_weekday else ""
    return f"{weekday}{date}{text}"


def _clock_menu(world: DesktopWorld) -> Dialog:
    day = world.look.day
    options = (
        Option(f"{DAYS[(day - 1) % 7]}, {day} June 2026"),
        Option("Date & time settings", Open("settings/datetime")),
    )
    return Dialog("clock", options=options, kind="menu")


def _icon_parts(world: DesktopWorld) -> tuple[object, ...]:
    return world.state, world.look, world.screen, world.ui.picked


@remember(64, _icon_parts)
def desk_icons(world: DesktopWorld) -> list[Spot]:
    """Home, trash, and what is in the folder Desktop, in columns from a side of the screen."""
    if not world.state.appearance.desktop_icons:
        return []
    fixed: list[tuple[str, str, str, Effect]] = [
        ("Home", "folder", "", Open("files/")),
        (title_of(TRASH), "trash", TRASH, Open(f"files/{TRASH}")),
    ]
    files = fs.children(world.state.files, "Desktop")
    fixed += [(fs.name_of(f.path), icon_of(f), f.path, opening(f)) for f in files]
    area, picked = work_area(world), world.ui.picked
    rows = max(1, int((area.height - 8) // ICON_HEIGHT))
    spots = []
    for i, (label, icon, path, effect) in enumerate(fixed):
        column, row = divmod(i, rows)
        x = 4 + column * ICON_WIDTH
        if world.look.icon_column == "right":
            x = area.right - ICON_WIDTH - x
        pick = Do("desk.pick", (label,))
        widget = DeskIcon(label, pick, icon=icon, picked=picked == label, path=path, on_double=effect)
        spots.append(Spot(widget, x, area.y + 8 + row * ICON_HEIGHT, ICON_WIDTH, ICON_HEIGHT))
    return spots


def desk_menu() -> Dialog:
    """Menu of a right click on the wallpaper."""
    options = (
        Option("Open Terminal", Launch("terminal")),
        Option("Open Files", Launch("files")),
        Option("Change Background", Open("settings/appearance")),
        Option("Display Settings", Open("settings/display")),
    )
    return Dialog("desktop", options=options, kind="menu")
