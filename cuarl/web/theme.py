"""How all pages of this project look: colours for light and dark, and what stands on each of them."""

from __future__ import annotations

from importlib.resources import files

_STATIC = files("cuarl.web") / "static"
ICON: bytes = (_STATIC / "icon.svg").read_bytes()
"""The icon, SVG."""


def stylesheet() -> bytes:
    """The style sheet that a page's own follows."""
    return (_STATIC / "theme.css").read_bytes()
