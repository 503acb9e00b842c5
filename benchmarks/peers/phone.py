"""The phone that both sides play on: twelve apps on a home screen. A tap opens an app, or goes back."""

from __future__ import annotations

import random
import time
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

APPS = ("Mail", "Maps", "Clock", "Music", "Notes", "Photos", "Camera", "Files", "Chat", "Store", "News", "Weather")
SYSTEM = (
    "You operate a phone that you see as a picture. Coordinates go from 0 at the left and top to 999 at the right and "
    "bottom. Call the function once, look at the next picture, and so on until the task is done."
)
_COLUMNS, _ROWS = 3, 4
_PAPER, _INK, _BAR = (238, 240, 242), (30, 30, 34), (40, 56, 78)


class Phone:
    """One episode's phone. ``start`` and ``tap`` give the screen."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._order: list[str] = []
        self._open, self._goal, self._taps = "", "", 0
        self.solved = False

    def start(self, seed: int, app: str) -> Image.Image:
        """The home screen, its apps in an order of ``seed``; the task is to open ``app``."""
        self._order = random.Random(seed).sample(APPS, len(APPS))
        self._open, self._goal, self._taps, self.solved = "", app, 0, False
        return self._draw(None)

    def tap(self, x: int, y: int) -> Image.Image:
        """Tap at thousandths of the screen."""
        self._taps += 1
        at = x * self.width // 1000, y * self.height // 1000
        if self._open:
            self._open = "" if at[1] < self._top else self._open
        elif at[1] >= self._top:
            row = (at[1] - self._top) * _ROWS // (self.height - self._top)
            self._open = self._order[row * _COLUMNS + at[0] * _COLUMNS // self.width]
            self.solved |= self._open == self._goal
        return self._draw(at)

    @property
    def _top(self) -> int:
        return self.height // 8

    def _draw(self, mark: tuple[int, int] | None) -> Image.Image:
        picture = Image.new("RGB", (self.width, self.height), _colour(self._open) if self._open else _PAPER)
        draw = ImageDraw.Draw(picture)
        if not self._open:
            wide, high = self.width // _COLUMNS, (self.height - self._top) // _ROWS
            for i, app in enumerate(self._order):
                picture.paste(_icon(app, wide, high), (i % _COLUMNS * wide, self._top + i // _COLUMNS * high))
        draw.rectangle((0, 0, self.width, self._top), fill=_BAR)
        title = f"< {self._open}" if self._open else f"Home {self._taps}"
        draw.text((8, self._top // 2), title, fill="white", font=_font(max(10, self._top // 2)), anchor="lm")
        if mark:
            draw.ellipse((mark[0] - 5, mark[1] - 5, mark[0] + 5, mark[1] + 5), outline="red", width=2)
        return picture


class Environment:
    """The phone as TRL wants it: ``reset`` and tools that answer with content, in the order they are shown."""

    def __init__(self, width: int, height: int, turns: int, delay_s: float) -> None:
        self._phone, self._turns, self._delay_s, self._step = Phone(width, height), turns, delay_s, 0

    def reset(self, seed: int = 0, app: str = APPS[0], **_: Any) -> list[dict[str, Any]]:
        """Begin an episode."""
        self._step = 0
        return [{"type": "image", "image": self._phone.start(seed, app)}, {"type": "text", "text": request(app)}]

    def click(self, x: int, y: int) -> list[dict[str, Any]]:
        """
        Tap the screen.

        Args:
            x: 0 at the left to 999 at the right
            y: 0 at the top to 999 at the bottom
        """
        time.sleep(self._delay_s)
        self._step += 1
        shown = {"type": "image", "image": self._phone.tap(int(x), int(y))}
        return [shown, {"type": "text", "text": progress(self._step, self._turns)}]

    def get_reward(self) -> float:
        """1 if the app was opened."""
        return float(self._phone.solved)


def request(app: str) -> str:
    """What the user asks for."""
    return f"Open the {app} app."


def progress(step: int, turns: int) -> str:
    """What stands under the picture that a click gives."""
    return f"Step {step} of {turns}."


def _colour(app: str) -> tuple[int, int, int]:
    chance = random.Random(app)
    return chance.randrange(40, 220), chance.randrange(40, 220), chance.randrange(40, 220)


@lru_cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size=size)


@lru_cache
def _icon(app: str, wide: int, high: int) -> Image.Image:
    cell = Image.new("RGB", (wide, high), _PAPER)
    draw = ImageDraw.Draw(cell)
    side = min(wide, high) * 3 // 5
    left, top = (wide - side) // 2, high // 12
    draw.rounded_rectangle((left, top, left + side, top + side), radius=side // 5, fill=_colour(app))
    draw.text((wide // 2, top + side // 2), app[:2], fill="white", font=_font(max(8, side // 2)), anchor="mm")
    draw.text((wide // 2, high * 5 // 6), app, fill=_INK, font=_font(max(9, high // 6)), anchor="mm")
    return cell
