"""What can be chosen about pairs of a picture and an instruction (``--grounding FILE``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

from cuarl.config.fields import EnvOptions

Boxes = Literal["auto", "xywh", "xyxy"]


class Options(EnvOptions):
    """The options of ``env: grounding``."""

    flags = MappingProxyType({"file": "grounding"})
    implied_by = frozenset({"file"})

    type: Literal["grounding"] = "grounding"
    file: str | None = None
    """Pairs of a picture and an instruction, with the box of what is meant: a JSON file in ScreenSpot's format, or a
    folder of them; see docs/guides/grounding.md."""
    images: str | None = None
    """Folder of the pictures; unset means that of the file, or the one that ScreenSpot has beside it."""
    boxes: Boxes = "auto"
    """What four numbers of a box are, in pixels: left, top, width, height (xywh), or left, top, right, bottom (xyxy);
    auto takes the second for pairs in ScreenSpot-Pro's format."""
    actions: Literal["auto", "desktop", "phone"] = "auto"
    """Which actions a policy is offered: a phone's for pictures of phones (auto), or the same for all."""
