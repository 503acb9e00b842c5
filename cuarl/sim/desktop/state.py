"""The desktop's state.

One typed, immutable tree that validators, presets and side-effect checks read by dotted path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cuarl.sim.desktop.records import File, User

VOLATILE: tuple[str, ...] = ("ui.*", "browser.history", "terminal.history", "calculator.*", "clipboard.*")
"""Globs of paths that change by merely using the desktop."""

DERIVED: tuple[str, ...] = ("network.connected",)
"""Globs of paths that the desktop alone sets, as a consequence of another switch (see ``rules.py``)."""

FILES: tuple[File, ...] = (
    File("Desktop", folder=True),
    File("Desktop/welcome.txt", text="Everything of yours is in Home.\n"),
    File("Documents", folder=True),
    File("Documents/budget.txt", text="rent 850\nfood 320\ntravel 90\nbooks 45\n"),
    File("Documents/letter.txt", text="Dear Ada,\nthank you for the tickets.\nSee you on Friday.\n"),
    File("Documents/minutes.txt", text="Team meeting\nRoom 12 at nine\nNext meeting: Tuesday\n"),
    File("Documents/Archive", folder=True),
    File("Documents/Archive/old-plan.txt", text="draft of last year\n"),
    File("Downloads", folder=True),
    File("Downloads/manual.pdf", size_kb=820),
    File("Downloads/setup.log", text="start\nwarning: low disk\ncopy files\nwarning: slow network\ndone\n"),
    File("Music", folder=True),
    File("Music/rain.mp3", size_kb=5120),
    File("Pictures", folder=True),
    File("Pictures/garden.jpg", size_kb=2210),
    File("Pictures/harbour.jpg", size_kb=1840),
    File("todo.txt", text="water the plants\ncall the bank\nbuy stamps\n"),
)
"""The home folder of a fresh desktop."""


@dataclass(frozen=True, slots=True)
class Network:
    """Networks; ``connected`` is the name of the joined Wi-Fi, or empty."""

    wifi: bool = True
    connected: str = "HomeNet"
    available: tuple[str, ...] = ("HomeNet", "Office", "Library", "Neighbour 5G")
    airplane_mode: bool = False
    wired: bool = True
    vpn: bool = False
    hotspot: bool = False
    proxy: Literal["Off", "Manual", "Automatic"] = "Off"


@dataclass(frozen=True, slots=True)
class Bluetooth:
    """Bluetooth."""

    enabled: bool = False
    visible: bool = False
    name: str = "desk"


@dataclass(frozen=True, slots=True)
class Appearance:
    """How the desktop looks."""

    dark_style: bool = False
    accent: Literal["Seed", "Blue", "Green", "Orange", "Purple"] = "Seed"
    """``Seed`` is the one that the appearance seed draws; so with the wallpaper."""
    wallpaper: Literal["Seed", "Hills", "Sunset", "Waves", "Dunes", "Night", "Mist"] = "Seed"
    animations: bool = True
    desktop_icons: bool = True


@dataclass(frozen=True, slots=True)
class Sound:
    """Sound; volumes are percentages."""

    volume: int = 65
    muted: bool = False
    over_amplification: bool = False
    balance: int = 50
    input_volume: int = 70
    input_muted: bool = False
    output: Literal["Speakers", "Headphones", "HDMI"] = "Speakers"
    alert: Literal["Click", "Drop", "Hum", "None"] = "Drop"
    system_sounds: bool = True


@dataclass(frozen=True, slots=True)
class Display:
    """Screens; ``brightness`` is a percentage."""

    brightness: int = 80
    resolution: Literal["1920x1080", "1600x900", "1280x720"] = "1920x1080"
    refresh_hz: Literal[60, 75, 144] = 60
    orientation: Literal["Landscape", "Portrait", "Upside down"] = "Landscape"
    fractional_scaling: bool = False
    night_light: bool = False
    night_warmth: int = 40


@dataclass(frozen=True, slots=True)
class Power:
    """Power; ``blank_minutes`` 0 means never."""

    mode: Literal["Balanced", "Power saver", "Performance"] = "Balanced"
    dim_screen: bool = True
    blank_minutes: Literal[0, 1, 5, 10, 15] = 5
    auto_suspend: bool = False
    show_percentage: bool = False
    power_button: Literal["Suspend", "Power off", "Nothing"] = "Suspend"
    battery: int = 76


@dataclass(frozen=True, slots=True)
class DateTime:
    """Date and time."""

    automatic: bool = True
    automatic_zone: bool = False
    zone: Literal["Berlin", "London", "New York", "Tokyo", "Sydney"] = "Berlin"
    use_24h: bool = True
    show_weekday: bool = False
    show_date: bool = False
    show_seconds: bool = False
    week_numbers: bool = False


@dataclass(frozen=True, slots=True)
class Users:
    """Who can sign in; the first one is signed in."""

    people: tuple[User, ...] = (User("Sam Reed", admin=True), User("Kim Lowe"))
    automatic_login: bool = False
    guest: bool = False


@dataclass(frozen=True, slots=True)
class Notifications:
    """Notifications."""

    do_not_disturb: bool = False
    on_lock_screen: bool = True


@dataclass(frozen=True, slots=True)
class Input:
    """Mouse, touchpad and keyboard."""

    pointer_speed: int = 50
    natural_scrolling: bool = False
    left_handed: bool = False
    tap_to_click: bool = True
    key_repeat: bool = True
    layout: Literal["English (US)", "English (UK)", "German", "French"] = "English (US)"


@dataclass(frozen=True, slots=True)
class Accessibility:
    """Accessibility."""

    text_size: Literal["Small", "Default", "Large"] = "Default"
    high_contrast: bool = False
    screen_reader: bool = False
    sticky_keys: bool = False
    large_pointer: bool = False
    visual_alerts: bool = False


@dataclass(frozen=True, slots=True)
class Privacy:
    """Privacy."""

    location: bool = False
    camera: bool = True
    microphone: bool = True
    file_history: bool = True
    screen_lock: bool = True
    lock_minutes: Literal[0, 1, 5, 30] = 5
    empty_trash: bool = False


@dataclass(frozen=True, slots=True)
class Clipboard:
    """What was copied: text, or files that are to be copied or moved."""

    text: str = ""
    files: tuple[str, ...] = ()
    """Paths below the home folder."""
    moving: bool = False
    """Whether pasting the files takes them from where they are."""


@dataclass(frozen=True, slots=True)
class Browser:
    """The web browser."""

    bookmarks: tuple[str, ...] = ("news.test", "wiki.test")
    history: tuple[str, ...] = ()
    """Visited addresses, the last one first."""
    home: str = "about:home"
    show_bookmarks_bar: bool = True


@dataclass(frozen=True, slots=True)
class Calculator:
    """The calculator: what was typed, and the result that is shown."""

    expression: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class Terminal:
    """What all terminals share."""

    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DesktopState:
    """Everything a desktop remembers."""

    network: Network = Network()
    bluetooth: Bluetooth = Bluetooth()
    appearance: Appearance = Appearance()
    sound: Sound = Sound()
    display: Display = Display()
    power: Power = Power()
    datetime: DateTime = DateTime()
    users: Users = Users()
    notifications: Notifications = Notifications()
    input: Input = Input()
    accessibility: Accessibility = Accessibility()
    privacy: Privacy = Privacy()
    files: tuple[File, ...] = FILES
    trash: tuple[File, ...] = ()
    """Deleted files and folders, with the paths that they had."""
    clipboard: Clipboard = Clipboard()
    browser: Browser = Browser()
    calculator: Calculator = Calculator()
    terminal: Terminal = Terminal()
