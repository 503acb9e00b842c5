"""Icons that only the desktop has, and its apps' launcher icons, added to the kit's tables."""

from __future__ import annotations

from cuarl.sim.kit.icons import APP_GLYPHS, ICONS

ICONS.update(
    {
        "terminal": (("l", 2.8, 3, 6, 10, 12, 3, 18), ("l", 2.8, 12, 19, 21, 19)),
        "text": (
            ("l", 2.4, 3, 5, 21, 5),
            ("l", 2.4, 3, 10, 17, 10),
            ("l", 2.4, 3, 15, 21, 15),
            ("l", 2.4, 3, 20, 12, 20),
        ),
        "win_max": (("b", 2.4, 4, 4, 20, 20, 1),),
        "win_restore": (("b", 2.2, 3, 8, 16, 21, 1), ("l", 2.2, 8, 4, 20, 4, 20, 16)),
        "win_min": (("l", 2.8, 4, 18, 20, 18),),
        "compass": (("o", 2.4, 12, 12, 9.4), ("p", 16.5, 6.5, 14, 14, 7.5, 17.5, 10, 10), ("-c", 12, 12, 1.6)),
        "mouse": (("b", 2.2, 6, 2, 18, 22, 6), ("l", 2.2, 12, 6, 12, 11)),
        "screen": (("b", 2.2, 2, 3.5, 22, 17, 1.5), ("l", 2.4, 7.5, 21, 16.5, 21), ("l", 2.4, 12, 17, 12, 21)),
        "cut": (
            ("o", 2.2, 6, 18.5, 3),
            ("o", 2.2, 18, 18.5, 3),
            ("l", 2.2, 7.5, 16, 17, 2),
            ("l", 2.2, 16.5, 16, 7, 2),
        ),
        "save": (("b", 2.2, 3, 3, 21, 21, 1.5), ("r", 7, 12.5, 17, 20, 0.5), ("r", 7.5, 3.5, 15.5, 8, 0.4)),
    }
)

APP_GLYPHS.update({"terminal": ("terminal", 0.62), "editor": ("text", 0.11), "browser": ("compass", 0.57)})

ICONS.update({f"{name}_side": ICONS[name] for name in ("folder", "music", "photo", "trash")})
