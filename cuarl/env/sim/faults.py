"""Troubles of real devices, on demand, in simulated time: to test what deals with them without waiting."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import anyio.lowlevel
from PIL import Image, ImageDraw

from cuarl.errors import EnvError
from cuarl.types import Screenshot


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong."""

    render_delay_ms: float = 0
    """After an action the old screen is shown for this long."""
    spinner: bool = False
    """Something turns on the screen and never stops."""
    black_frames: int = 0
    """So many frames after each action are black."""
    hang: bool = False
    """``step`` never returns."""
    crash_at: int | None = None
    """The device dies at this step, counted from 0."""


class SimClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.time_ms = 0.0

    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return self.time_ms

    async def sleep_ms(self, duration: float) -> None:
        """Let time pass at once."""
        self.time_ms += duration
        await anyio.lowlevel.checkpoint()


class FaultyScreen:
    """What a camera would see between an action and the settled screen."""

    def __init__(self, faults: Faults) -> None:
        self.faults, self.clock = faults, SimClock()
        self._steps = 0
        self._since, self._black_left = 0.0, 0
        self._old: Screenshot | None = None
        self._new: Screenshot | None = None

    async def before_step(self) -> None:
        """Hang or die, if that is due. Raises EnvError."""
        if self.faults.hang:
            await anyio.sleep_forever()
        if self.faults.crash_at == self._steps:
            raise EnvError(f"the device died at step {self._steps}")
        self._steps += 1

    def show(self, old: Screenshot, new: Screenshot) -> None:
        """The screen is about to turn from ``old`` to ``new``."""
        self._old, self._new = old, new
        self._since, self._black_left = self.clock.now_ms(), self.faults.black_frames

    async def shoot(self) -> Screenshot:
        """A picture of this moment."""
        assert self._old is not None and self._new is not None
        if self._black_left > 0:
            self._black_left -= 1
            return Screenshot(Image.new("RGB", self._new.image.size))
        late = self.clock.now_ms() - self._since < self.faults.render_delay_ms
        shown = self._old if late else self._new
        return _with_spinner(shown, self.clock.now_ms()) if self.faults.spinner else shown


def _with_spinner(screenshot: Screenshot, time_ms: float) -> Screenshot:
    image = screenshot.image.copy()
    x, y, r = image.width // 2, image.height // 2, image.width // 10
    angle = time_ms * 0.36 % 360
    ImageDraw.Draw(image).arc(
        (x - r, y - r, x + r, y + r), angle, angle + 270, fill=(128, 128, 128), width=max(2, r // 4)
    )
    return Screenshot(image)
