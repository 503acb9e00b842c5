"""Actions as mouse and keyboard events of a page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio

from cuarl.env.browser.clipboard import paste, taken
from cuarl.env.browser.dialogs import goes_on
from cuarl.env.browser.keys import UnknownKey, chord, names_of, shortcut
from cuarl.env.browser.tabs import Silence, Tabs
from cuarl.env.durations import expected_s
from cuarl.env.held import beyond
from cuarl.env.points import outside
from cuarl.types import (
    Action,
    Button,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    Swipe,
    TypeText,
    Wait,
    held_keys,
)

ACTIONS = frozenset(
    {
        "click", "long_press", "move", "mouse_down", "mouse_up", "drag", "scroll", "select_option", "type", "key",
        "key_down", "key_up", "wait", "answer", "finish",
    }
)  # fmt: skip
TOUCH_ACTIONS = frozenset({"click", "long_press", "swipe", "type", "button", "wait", "answer", "finish"})
"""A phone's: fingers slide, and of the buttons there are back and enter."""
SHORT = frozenset({"click", "move", "mouse_down", "mouse_up", "scroll", "key", "key_down", "key_up", "button"})
"""Actions of one event or two. Others consist of many, and one that is not done in time may be half done."""
BUTTONS = {"back": ("Alt", "ArrowLeft"), "enter": ("Enter",)}
NOTCH_PX = 100
DRAG_STEP_PX = 12
"""Pages see a drag as many small movements; libraries ignore a single jump."""
LET_GO_S = 1.0
"""How long a page may take to notice that a key was let go."""
WHEEL_MS = 40
"""Wheel events are not acknowledged; this is how long a page takes to act on one."""


def refusal(action: Action, size: tuple[int, int], allowed: frozenset[str] = ACTIONS) -> str:
    """Why an action can't be carried out on a screen of ``size`` pixels; empty if it can. Nothing has been done yet."""
    if action.kind not in allowed:
        return f"a browser has no {action.kind} here"
    if isinstance(action, Button) and action.name not in BUTTONS:
        return f"a browser has no button {action.name}"
    if reason := outside(action, size):
        return reason
    try:
        if isinstance(action, Key):
            chord(action.keys)
        elif isinstance(action, KeyDown | KeyUp):
            one_key(action)
        names_of(held_keys(action))
    except UnknownKey as error:
        return str(error)
    return beyond(action, "a touch screen", repeats=True) if allowed is TOUCH_ACTIONS else ""


def one_key(action: KeyDown | KeyUp) -> str:
    """The key in Playwright's name. Raises UnknownKey."""
    found = names_of((action.key,))
    if len(found) > 1:
        raise UnknownKey(f"one key at a time, not {action.key!r}")
    return found[0]


async def carry_out(action: Action, tabs: Tabs, scale: float, size: tuple[int, int]) -> bool:
    """Do it in the shown tab; points are pixels of the screenshot. Whether the page has taken it, for all that it says.

    What is done in the moment in which a page is replaced may never be acknowledged, though the tab goes on. It is not
    repeated. Raises EnvError if the page does not take it and does not go on, or may have taken half of it.
    """
    page = await tabs.shown()
    try:
        async with tabs.bounded(f"the action {action.kind}", expected_s(action)):
            if tabs.question.is_open:
                await tabs.question.answer(action)
                return True
            await tabs.question.unless_asked(lambda: _done(action, tabs, page, scale, size))
    except Silence:
        if not _is_short(action) or not await goes_on(page):
            raise
        return False
    return True


def _is_short(action: Action) -> bool:
    return action.kind in SHORT and not held_keys(action) and not (isinstance(action, Key) and action.count > 1)


async def _done(action: Action, tabs: Tabs, page: Any, scale: float, size: tuple[int, int]) -> None:
    from playwright.async_api import Error

    try:
        async with _holding(page, held_keys(action)):
            await _act(action, tabs, page, scale, size)
    except Error:
        # a tab that closes itself when it is touched has been touched; if the browser is gone, the picture tells
        if not page.is_closed():
            raise


@asynccontextmanager
async def _holding(page: Any, keys: Sequence[str]) -> AsyncIterator[None]:
    """Hold keys meanwhile."""
    names = names_of(keys)
    for name in names:
        await page.keyboard.down(name)
    try:
        yield
    finally:
        # a page that asks takes them when it goes on
        with anyio.move_on_after(LET_GO_S, shield=True):
            for name in reversed(names):
                if not page.is_closed():
                    await page.keyboard.up(name)


async def _act(action: Action, tabs: Tabs, page: Any, scale: float, size: tuple[int, int]) -> None:
    match action:
        case Click():
            await page.mouse.click(*_css(action.x, action.y, scale), button=action.button, click_count=action.count)
        case LongPress():
            await page.mouse.move(*_css(action.x, action.y, scale))
            await page.mouse.down()
            await anyio.sleep(action.duration_ms / 1000)
            await page.mouse.up()
        case Move():
            await page.mouse.move(*_css(action.x, action.y, scale), steps=3)
        case MouseDown() | MouseUp():
            await _button(action, tabs, page, scale)
        case Drag():
            await _drag(page, action.path, scale)
        case Swipe():
            await _drag(page, ((action.x, action.y), (action.x2, action.y2)), scale)
        case Button():
            await _press(tabs, BUTTONS[action.name])
        case Scroll():
            x = size[0] // 2 if action.x is None else action.x
            y = size[1] // 2 if action.y is None else action.y
            await page.mouse.move(*_css(x, y, scale))
            await page.mouse.wheel(*_wheel(action, scale))
            await anyio.sleep(WHEEL_MS / 1000)
        case TypeText() if tabs.uploads.asked_for:
            await tabs.uploads.choose(action.text)
        case TypeText():
            await page.keyboard.type(action.text)
            if action.submit:
                await page.keyboard.press("Enter")
        case Key():
            for _ in range(action.count):
                await _press(tabs, chord(action.keys))
        case KeyDown():
            await page.keyboard.down(one_key(action))
            tabs.keys_down[one_key(action)] = None
        case KeyUp():
            await page.keyboard.up(one_key(action))
            tabs.keys_down.pop(one_key(action), None)
        case Wait():
            await anyio.sleep(action.seconds)


async def _button(action: MouseDown | MouseUp, tabs: Tabs, page: Any, scale: float) -> None:
    """Press or release a button of the mouse, where it is said or where the pointer is."""
    if action.x is not None and action.y is not None:
        await page.mouse.move(*_css(action.x, action.y, scale), steps=3)
    if isinstance(action, MouseDown):
        await page.mouse.down(button=action.button)
        tabs.buttons_down.add(action.button)
    else:
        await page.mouse.up(button=action.button)
        tabs.buttons_down.discard(action.button)


async def _drag(page: Any, points: Sequence[tuple[int, int]], scale: float) -> None:
    path = [_css(x, y, scale) for x, y in points]
    await page.mouse.move(*path[0])
    await page.mouse.down()
    for x, y in _between(path):
        await page.mouse.move(x, y)
    await page.mouse.up()


def _between(path: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    for (x, y), (x2, y2) in pairwise(path):
        steps = max(1, round(max(abs(x2 - x), abs(y2 - y)) / DRAG_STEP_PX))
        for i in range(1, steps + 1):
            yield x + (x2 - x) * i / steps, y + (y2 - y) * i / steps


async def _press(tabs: Tabs, keys: tuple[str, ...]) -> None:
    page = tabs.page
    # what was pressed before and is still down belongs to the chord
    together = chord((*tabs.keys_down, *keys)) if tabs.keys_down else keys
    match shortcut(together):
        case "back" | "forward" | "reload" as way:
            await tabs.travel(way)
        case "close":
            await tabs.close_shown()
        case "copy" | "cut" as kind:
            tabs.clipboard = await taken(page, kind) or tabs.clipboard
        case "paste":
            await paste(page, tabs.clipboard)
        case None:
            await page.keyboard.press("+".join(keys))


def _css(x: float, y: float, scale: float) -> tuple[float, float]:
    # the middle of the pixel, so that the first and last ones of an element belong to it
    return ((x + 0.5) / scale, (y + 0.5) / scale) if scale != 1 else (x, y)


def _wheel(action: Scroll, scale: float) -> tuple[float, float]:
    amount = action.amount * NOTCH_PX if action.unit == "notch" else action.amount / scale
    dx, dy = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[action.direction]
    return dx * amount, dy * amount
