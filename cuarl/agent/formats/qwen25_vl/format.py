"""The tool calls of Qwen2.5-VL: words and markup of ``qwen3-vl``, points in pixels of the resized picture.

The family's processor makes both sides multiples of 28 and bounds the area; with other bounds the same numbers mean
another place (https://github.com/QwenLM/Qwen3-VL/issues/676), so the size that was really seen is handed in and
recorded.
"""

from __future__ import annotations

from typing import ClassVar

from cuarl.agent.formats.base import Size
from cuarl.agent.formats.qwen3_vl.format import Qwen3VL
from cuarl.agent.formats.qwen3_vl.prompt import system_prompt
from cuarl.agent.prompt import Window
from cuarl.policy.resize import whole_tokens

SIDE = 28
"""Pixels of a token's side."""
MIN_PIXELS, MAX_PIXELS = 4 * SIDE**2, 16384 * SIDE**2
"""Bounds of a picture's area that the family's processor comes with."""
_POINTS = "Coordinates are pixels of the screenshot, from its top left corner."


class Qwen25VL(Qwen3VL):
    """The format for one kind of device."""

    family: ClassVar[str] = "qwen2.5-vl"
    absolute: ClassVar[bool] = True
    window = Window(history_images=1, history_turns=4)

    @property
    def system_prompt(self) -> str:
        """A constant of the kind of device."""
        return system_prompt(self.kind, _POINTS)

    def seen(self, sent: Size) -> Size:
        """Whole tokens, within the usual bounds of the area."""
        return Size(*whole_tokens(*sent, side=SIDE, min_pixels=MIN_PIXELS, max_pixels=MAX_PIXELS))
