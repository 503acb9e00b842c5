"""Waiting until a screen has reacted and is still, instead of sleeping for a fixed time.

First wait for a change (at most ``react_ms``), then until nothing has changed for ``quiet_ms``; never longer than
``cap_ms`` in all. A screen that never rests is returned as it is, with ``settled`` False. Frames that are black all
over are not what a policy should act on: after ``black_limit`` of them in a row the device is asked for its health, and
if the next frame is black too, that is an environment error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from cuarl.errors import EnvError
from cuarl.types import Screenshot


class Clock(Protocol):
    """Time as something that can be replaced in tests and simulations."""

    def now_ms(self) -> float:
        """Milliseconds since some fixed moment."""
        ...

    async def sleep_ms(self, duration: float) -> None:
        """Let ``duration`` milliseconds pass."""
        ...


class WallClock:
    """The event loop's own time."""

    def now_ms(self) -> float:
        """Milliseconds since some fixed moment."""
        return anyio.current_time() * 1000

    async def sleep_ms(self, duration: float) -> None:
        """Let ``duration`` milliseconds pass."""
        await anyio.sleep(duration / 1000)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a screen."""

    quiet_ms: float = 300
    """No change for this long counts as still."""
    react_ms: float = 1000
    """How long to wait for a first change; an action without any effect costs this much."""
    cap_ms: float = 3000
    poll_ms: float = 50
    black_limit: int = 5


@dataclass(frozen=True, slots=True)
class Settled:
    """The screen to go on with."""

    screenshot: Screenshot
    settle_ms: float
    """From the action to the last change that was seen and the quiet time after it."""
    settled: bool
    changed: bool
    """Whether it differs from the screen before the action."""


async def settle(
    before: Screenshot,
    shoot: Callable[[], Awaitable[Screenshot]],
    *,
    patience: Patience | None = None,
    clock: Clock | None = None,
    check_health: Callable[[], Awaitable[None]] | None = None,
) -> Settled:
    """Watch the screen after an action until it is still.

    ``check_health`` may raise a better-informed ``EnvError`` about a black screen. Raises EnvError if it stays black.
    """
    wait, time = patience or Patience(), clock or WallClock()
    start = changed_at = time.now_ms()
    shown, reacted, black = before, False, 0
    while True:
        frame = await shoot()
        now = time.now_ms()
        black = black + 1 if is_black(frame) else 0
        if black >= wait.black_limit:
            await _after_black(shoot, check_health, black)
            black = 0
        if not _same(frame, shown):
            shown, changed_at, reacted = frame, now, True
        quiet = now - changed_at >= (wait.quiet_ms if reacted else wait.react_ms)
        if (quiet and not black) or now - start >= wait.cap_ms:
            return Settled(shown, now - start, quiet and not black, not _same(shown, before))
        await time.sleep_ms(wait.poll_ms)


async def _after_black(
    shoot: Callable[[], Awaitable[Screenshot]], check_health: Callable[[], Awaitable[None]] | None, count: int
) -> None:
    if check_health is not None:
        await check_health()
    if is_black(await shoot()):
        raise EnvError(f"the screen is black: {count + 1} frames in a row", hint="check that the device is awake")


def is_black(screenshot: Screenshot) -> bool:
    """Whether every pixel is (nearly) black."""
    return screenshot.image.point(lambda v: 255 if v > BLACK_LEVEL else 0).getbbox() is None


BLACK_LEVEL = 2


def _same(a: Screenshot, b: Screenshot) -> bool:
    return a is b or a.digest == b.digest
