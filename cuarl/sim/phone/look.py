"""Appearance by seed: what differs from device to device without mattering to a task."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache

from cuarl.sim.kit.pictures import WALLPAPERS
from cuarl.sim.kit.style import ACCENTS
from cuarl.sim.phone.records import Notification

NOTIFICATIONS: tuple[Notification, ...] = (
    Notification("messages", "Ada Meyer", "Lunch tomorrow?"),
    Notification("mail", "Library", "Book is due"),
    Notification("calendar", "Team call", "Today at 14:00"),
    Notification("store", "2 updates", "Facebook, Maps"),
    Notification("weather", "Rain soon", "Take an umbrella"),
    Notification("clock", "Missed alarm", "Work 07:30"),
    Notification("music", "New release", "Paper Moon"),
)
POPUPS: tuple[tuple[str, str, str], ...] = (
    ("Battery tips", "Your battery could last longer.", "Dismiss"),
    ("Rate this phone", "Are you happy with it so far?", "Not now"),
    ("System update", "A new version is ready to install.", "Later"),
    ("Backup is paused", "Waiting for a charger.", "OK"),
    ("New feature", "Search is faster now.", "Got it"),
)
"""Title, text and closing button of the pop-ups that may be in the way."""


@dataclass(frozen=True, slots=True)
class Look:
    """One device's appearance, drawn from a seed."""

    seed: int = 0
    dark: bool = False
    accent: int = 0
    wallpaper: str = "hills"
    icon_shape: int = 0
    icon_set: int = 0
    icon_hue: int = 0
    font_step: float = 1.0
    bold: bool = False
    row_pad: float = 0.0
    battery: int = 72
    minutes: int = 600
    """Time of day, minutes from midnight; it stands still during an episode."""
    notifications: tuple[Notification, ...] = ()
    popup: int = -1
    """Index into ``POPUPS``; -1 for none."""
    discs: bool = False
    """Icons of settings rows on coloured discs."""
    home_clock: bool = False
    """A large clock on the home screen."""
    show_hint: bool = True
    """Whether settings rows carry subtitles where these are optional."""

    @classmethod
    @lru_cache(maxsize=4096)
    def drawn(cls, seed: int, clutter: float = 0.0) -> Look:
        """The look of a seed; ``clutter`` is the share of devices with a pop-up in the way."""
        rng = random.Random(f"look/{seed}")
        posted = rng.sample(NOTIFICATIONS, rng.choice((0, 1, 1, 2, 3)))
        look = cls(
            seed=seed,
            dark=rng.random() < 0.4,
            accent=rng.randrange(len(ACCENTS)),
            wallpaper=rng.choice(WALLPAPERS),
            icon_shape=rng.randrange(4),
            icon_set=rng.choice((0, 0, 0, 1, 2)),
            icon_hue=rng.randrange(12),
            font_step=rng.choice((0.94, 1.0, 1.0, 1.08)),
            bold=rng.random() < 0.3,
            row_pad=rng.choice((0.0, 2.0, 4.0)),
            battery=rng.randint(18, 100),
            minutes=rng.randrange(24 * 60),
            notifications=tuple(posted),
            show_hint=rng.random() < 0.75,
            discs=rng.random() < 0.3,
            home_clock=rng.random() < 0.5,
        )
        popup = rng.randrange(len(POPUPS)) if rng.random() < clutter else -1
        return replace(look, popup=popup)
