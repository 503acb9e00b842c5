"""One connection to a display: pictures of it, mouse, keyboard, windows. Blocking; one call at a time.

Everything that goes wrong with the connection is an EnvError, since the display is the device.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

from PIL import Image

from cuarl.env.linux.keyboard import SUBMIT_S, Keyboard
from cuarl.env.linux.windows import Window, list_windows
from cuarl.errors import EnvError
from cuarl.types import Held, Screenshot

BUTTONS = {"left": 1, "middle": 2, "right": 3}
WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
STEP_S = 0.01
"""Time between two points of a drag."""


class Screen:
    """The display called ``name``, such as ``:7``."""

    def __init__(self, name: str, size: tuple[int, int]) -> None:
        """Connect. Raises EnvError."""
        import mss
        from Xlib.display import Display

        self.name, self.size = name, size
        self._lock = threading.Lock()
        self._last: tuple[bytes, Screenshot] | None = None
        with self._connected():
            # "unix/" keeps it from trying TCP, where something else may listen
            self._display: Any = Display(f"unix/{name}")
            self._root = self._display.screen().root
            # the X protocol's C library ends the whole process when a display goes; this one does not use it
            self._pictures: Any = mss.MSS(display=name, backend="xshmgetimage")
            self.keyboard = Keyboard(self._display)

    def grab(self) -> Screenshot:
        """What is shown now; the very same object as before if nothing has changed."""
        with self._lock, self._connected():
            width, height = self.size
            pixels = bytes(self._pictures.grab({"left": 0, "top": 0, "width": width, "height": height}).raw)
        if self._last is None or self._last[0] != pixels:
            image = Image.frombytes("RGB", self.size, pixels, "raw", "BGRX")
            self._last = pixels, Screenshot(image)
        return self._last[1]

    def windows(self) -> list[Window]:
        """The windows from the lowest to the topmost."""
        with self._lock, self._connected():
            return list_windows(self._display)

    def is_managed(self) -> bool:
        """Whether a window manager has taken charge."""
        with self._lock, self._connected():
            atom = self._display.intern_atom("_NET_SUPPORTING_WM_CHECK")
            return self._root.get_full_property(atom, 0) is not None

    def paint(self, colour: int) -> None:
        """Fill the root window with a colour, 0xRRGGBB."""
        with self._lock, self._connected():
            self._root.change_attributes(background_pixel=colour)
            self._root.clear_area(0, 0, *self.size)
            self._display.sync()

    def move(self, x: int, y: int, held: Held = ()) -> None:
        """Move the pointer."""
        with self._lock, self._connected(), self.keyboard.holding(held):
            self._move(x, y)
            self._display.sync()

    def mouse(self, button: str, *, down: bool, at: tuple[int, int] | None = None) -> None:
        """Press a button and keep it down, or let it go; ``at`` a point, or where the pointer is."""
        with self._lock, self._connected():
            if at is not None:
                self._move(*at)
            self._button(BUTTONS[button], down=down)
            self._display.sync()

    def click(self, x: int, y: int, button: str = "left", count: int = 1, hold_s: float = 0.0, held: Held = ()) -> None:
        """Press and release at a point, ``count`` times in quick succession."""
        with self._lock, self._connected(), self.keyboard.holding(held):
            self._move(x, y)
            for _ in range(count):
                self._button(BUTTONS[button], down=True)
                if hold_s:
                    self._display.sync()
                    time.sleep(hold_s)
                self._button(BUTTONS[button], down=False)
            self._display.sync()

    def drag(self, path: Sequence[tuple[int, int]], duration_s: float, held: Held = ()) -> None:
        """Hold the left button along a path."""
        with self._lock, self._connected(), self.keyboard.holding(held):
            self._move(*path[0])
            self._button(BUTTONS["left"], down=True)
            self._display.sync()
            for x, y in along(path, max(len(path), int(duration_s / STEP_S))):
                self._move(x, y)
                self._display.sync()
                time.sleep(STEP_S)
            self._button(BUTTONS["left"], down=False)
            self._display.sync()

    def scroll(self, x: int, y: int, direction: str, notches: int, held: Held = ()) -> None:
        """Turn the wheel at a point."""
        with self._lock, self._connected(), self.keyboard.holding(held):
            self._move(x, y)
            for _ in range(notches):
                self._button(WHEEL[direction], down=True)
                self._button(WHEEL[direction], down=False)
            self._display.sync()

    def type(self, text: str, *, submit: bool = False) -> None:
        """Type a text, then Enter if it is to be submitted. Raises keyboard.Untypable before anything is typed."""
        with self._lock, self._connected():
            self.keyboard.type(text)
            if submit:
                time.sleep(SUBMIT_S)
                self.keyboard.type("\n")

    def press(self, keys: Sequence[str], count: int = 1) -> None:
        """Press keys together, ``count`` times. Raises keyboard.Untypable."""
        with self._lock, self._connected():
            self.keyboard.press(keys, count)

    def key(self, name: str, *, down: bool) -> None:
        """Press a key and keep it down, or let it go. Raises keyboard.Untypable."""
        with self._lock, self._connected():
            self.keyboard.set(name, down=down)

    def catch_up(self) -> None:
        """Wait until the active window has read what it was sent, as far as it can be asked."""
        with self._lock, self._connected():
            self.keyboard.catch_up()

    def close(self) -> None:
        """Disconnect; safe after the display has gone."""
        with self._lock:
            for close in (self._pictures.close, self._display.close):
                with suppress(EnvError), self._connected():
                    close()
            # what the library leaves open when the other end has gone
            self._display.display.socket.close()

    def _move(self, x: int, y: int) -> None:
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)

    def _button(self, number: int, *, down: bool) -> None:
        from Xlib import X
        from Xlib.ext import xtest

        xtest.fake_input(self._display, X.ButtonPress if down else X.ButtonRelease, number)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        from mss.exception import ScreenShotError
        from Xlib.error import ConnectionClosedError, DisplayError, XError

        try:
            yield
            # mss asserts that an answer came, which fails when the display has gone
        except (
            ConnectionClosedError,
            DisplayError,
            XError,
            ScreenShotError,
            OSError,
            struct.error,
            AssertionError,
        ) as error:
            raise EnvError(f"the display {self.name} does not answer: {type(error).__name__}: {error}") from error


def along(path: Sequence[tuple[int, int]], steps: int) -> list[tuple[int, int]]:
    """About ``steps`` points on the way along ``path``, its corners and its end among them; the start is left out."""
    lengths = [((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5 for (ax, ay), (bx, by) in pairwise(path)]
    total = sum(lengths) or 1.0
    points = []
    for ((ax, ay), (bx, by)), length in zip(pairwise(path), lengths, strict=True):
        parts = max(1, round(steps * length / total))
        points += [(round(ax + (bx - ax) * i / parts), round(ay + (by - ay) * i / parts)) for i in range(1, parts + 1)]
    return points
