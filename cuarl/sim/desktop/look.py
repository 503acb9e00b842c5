"""Appearance by seed: what differs from desktop to desktop without mattering to a task."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from cuarl.sim.kit.style import ACCENTS

WALLPAPERS = ("hills", "sunset", "waves", "dunes", "night", "mist", "abstract")
NOTICES: tuple[tuple[str, str], ...] = (
    ("Updates available", "12 packages can be updated."),
    ("Disk almost full", "Free some space soon."),
    ("New device found", "A printer was added."),
    ("Backup finished", "All files were saved."),
    ("Battery tip", "A darker screen lasts longer."),
)
"""Title and text of the notifications that may be in the way."""
OPENABLE = ("files", "terminal", "editor", "settings", "browser", "calculator")


@dataclass(frozen=True, slots=True)
class DesktopLook:
    """One desktop's appearance, drawn from a seed."""

    seed: int = 0
    dark: bool = False
    accent: int = 0
    wallpaper: str = "hills"
    icon_shape: int = 2
    icon_set: int = 0
    icon_hue: int = 0
    font_step: float = 1.0
    bold: bool = False
    panel: Literal["bottom", "top"] = "bottom"
    """Edge of the screen that the panel lies at."""
    buttons: Literal["right", "left"] = "right"
    """Side of a title bar that its buttons are on."""
    round_buttons: bool = False
    """Whether these are coloured discs rather than bare marks."""
    centred_title: bool = True
    labelled_tasks: bool = True
    """Whether the panel's entries of windows have their titles on them."""
    icon_column: Literal["left", "right"] = "left"
    """Side of the screen that the icons on the desktop are on."""
    dark_terminal: bool = True
    minutes: int = 600
    """Time of day, minutes from midnight; it stands still during an episode."""
    day: int = 12
    """Day of June 2026."""
    battery: int = 76
    open_apps: tuple[str, ...] = ()
    """Apps with a window at the start."""
    offset: tuple[int, int] = (0, 0)
    """Where the first window opens, units from its usual place."""
    notice: int = -1
    """Index into ``NOTICES``; -1 for none."""

    @classmethod
    def drawn(cls, seed: int, clutter: float = 0.0) -> DesktopLook:
        """The look of a seed; ``clutter`` is the share of desktops with a notification in the way."""
        rng = random.Random(f"desktop/{seed}")
        look = cls(
            seed=seed,
            dark=rng.random() < 0.4,
            accent=rng.randrange(len(ACCENTS)),
            wallpaper=rng.choice(WALLPAPERS),
            icon_shape=rng.choice((0, 1, 2)),
            icon_set=rng.choice((0, 0, 0, 1, 2)),
            icon_hue=rng.randrange(12),
            font_step=rng.choice((0.96, 1.0, 1.0, 1.04)),
            bold=rng.random() < 0.25,
            panel=rng.choice(("bottom", "bottom", "top")),
            buttons=rng.choice(("right", "right", "left")),
            round_buttons=rng.random() < 0.35,
            centred_title=rng.random() < 0.6,
            labelled_tasks=rng.random() < 0.7,
            icon_column=rng.choice(("left", "left", "right")),
            dark_terminal=rng.random() < 0.75,
            minutes=rng.randrange(24 * 60),
            day=rng.randint(1, 30),
            battery=rng.randint(18, 100),
            open_apps=tuple(rng.sample(OPENABLE, rng.choice((0, 0, 0, 1, 1, 2)))),
            offset=(rng.randint(-20, 20), rng.randint(-8, 10)),
        )
        return replace(look, notice=rng.randrange(len(NOTICES)) if rng.random() < clutter else -1)
