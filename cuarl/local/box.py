"""A box of the local server: a simulated phone or desktop that understands GBox's actions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

from PIL import Image

from cuarl.env.device_program import UNKNOWN_COMMAND, simulate
from cuarl.env.limits import excess
from cuarl.env.sim.base import SimulatedEnv
from cuarl.env.sim.devices import make_sim
from cuarl.env.sim.phone import SimEnv
from cuarl.local.adb_stock import StockPhone
from cuarl.local.hierarchy import dump
from cuarl.sim.desktop import elements as desktop
from cuarl.sim.phone import elements as phone
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Action, Screenshot, Scroll, Wait, placed, points

DEVICES: Mapping[str, str] = {"android": "phone", "linux": "desktop"}
EMPTY = TaskInstance(task_id="box", goal="an unused box", checks=())
_XDOTOOL = {
    "enter": "Return", "numpadEnter": "Return", "control": "ctrl", "meta": "super", "escape": "Escape", "tab": "Tab",
    "backspace": "BackSpace", "delete": "Delete", "insert": "Insert", "home": "Home", "end": "End", "pageUp": "Page_Up",
    "pageDown": "Page_Down", "arrowUp": "Up", "arrowDown": "Down", "arrowLeft": "Left", "arrowRight": "Right",
}  # fmt: skip
ROTATIONS = ("portrait", "landscapeLeft", "portraitUpsideDown", "landscapeRight")
"""By quarter turns, counterclockwise, of what is shown."""
_TURNS = (None, Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)
_FROM_WIRE = {
    "back": "back", "home": "home", "appSwitch": "recents", "menu": "menu", "power": "power", "volumeUp": "volume_up",
    "volumeDown": "volume_down",
}  # fmt: skip
KEYS = frozenset(
    "abcdefghijklmnopqrstuvwxyz0123456789;=,-./`[\\]'"
) | frozenset(
    ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12", "control", "alt", "shift", "meta",
        "win", "cmd", "option", "arrowUp", "arrowDown", "arrowLeft", "arrowRight", "home", "end", "pageUp", "pageDown",
        "enter", "space", "tab", "escape", "backspace", "delete", "insert", "capsLock", "numLock", "scrollLock",
        "pause", "printScreen", "numpad0", "numpad1", "numpad2", "numpad3", "numpad4", "numpad5", "numpad6", "numpad7",
        "numpad8", "numpad9", "numpadAdd", "numpadSubtract", "numpadMultiply", "numpadDivide", "numpadDecimal",
        "numpadEnter", "numpadEqual", "volumeUp", "volumeDown", "volumeMute", "mediaPlayPause", "mediaStop",
        "mediaNextTrack", "mediaPreviousTrack"]
)  # fmt: skip
"""Keys that a box has (gbox-sdk 0.1.0a41)."""
BoxType = Literal["android", "linux"]


class Invalid(Exception):
    """A request that the box can't carry out; nothing was changed."""


class SimulatedBox:
    """One box. It shows an unused device until ``cuarl-device reset`` sets a task up.

    A ``stock`` box of Android has no such program, and the shell of any Android instead.
    """

    def __init__(
        self,
        box_id: str,
        box_type: BoxType,
        profile: str,
        config: Mapping[str, Any],
        runs_at: float,
        *,
        stock: bool = False,
    ) -> None:
        self.id, self.box_type, self.profile, self.config, self.runs_at = (
            box_id,
            box_type,
            profile,
            dict(config),
            runs_at,
        )
        self.terminated = False
        self.turned = 0
        """Quarter turns of the display from how the box was made."""
        self.halves = 0
        """So many pictures to come are cut in half."""
        self.expires_at = runs_at + _ms(config.get("expiresIn", "60m")) / 1000
        self.settings: dict[tuple[str, str], str] = {}
        self.acted: list[str] = []
        """Idempotency keys of the actions carried out, in order."""
        self._device: SimulatedEnv[Any] | None = None
        self._android = StockPhone(box_id, profile, clutter=0.0) if stock and box_type == "android" else None
        self._shot: Screenshot | None = None

    @property
    def ended(self) -> bool:
        """Whether it was terminated, or its time is over."""
        return self.terminated or time.monotonic() >= self.expires_at

    async def shows(self, screenshot: Screenshot) -> bool:
        """Whether its screen looks like that."""
        return (await self.screenshot()).digest == screenshot.digest

    async def find(self, target: str) -> tuple[int, int] | None:
        """The middle of what ``target`` names by its label; of several, that with the longest label."""
        world: Any = (await self.device()).world
        seen = phone.elements(world) if self.box_type == "android" else desktop.elements(world)
        named = [one for one in seen if one.label and one.label.lower() in target.lower()]
        return max(named, key=lambda one: len(one.label)).centre if named else None

    async def layout(self) -> str:
        """The views of a box of Android, as XML. Raises Invalid for one of Linux."""
        if self.box_type != "android":
            raise Invalid("screen-layout: this desktop has no browser whose page could be told")
        return dump((await self.device()).world, turned=self.turned)  # type: ignore[arg-type]

    async def elements(self) -> list[dict[str, Any]]:
        """What is detected on the screen."""
        world: Any = (await self.device()).world
        seen = phone.elements(world) if self.box_type == "android" else desktop.elements(world)
        found = []
        for number, one in enumerate(seen):
            x0, y0, x1, y1 = one.box
            place = {"x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0}
            middle = {"centerX": (x0 + x1) / 2, "centerY": (y0 + y1) / 2}
            named = {"id": str(number), "label": one.label, "type": one.role, "source": "vision", "path": ""}
            found.append({**named, **place, **middle})
        return found

    async def device(self) -> SimulatedEnv[Any]:
        """The device behind the box."""
        if self._device is None:
            await self.set_up(EMPTY, 0)
        assert self._device is not None
        return self._device

    async def set_up(self, task: TaskInstance, seed: int) -> None:
        """Start anew with a task."""
        device = make_sim(DEVICES[self.box_type], self.profile, clutter=0.0)
        self._shot = (await device.reset(task, seed)).screenshot
        self._device = device

    async def screenshot(self) -> Screenshot:
        """The screen as it is."""
        shot, turn = await self._upright(), _TURNS[self.turned]
        return shot if turn is None else Screenshot(shot.image.transpose(turn))

    async def _upright(self) -> Screenshot:
        await self.device()
        assert self._shot is not None
        return self._shot

    async def act(self, route: str, body: Mapping[str, Any], key: str) -> None:
        """Carry out an action. Raises Invalid."""
        if route == "screen-rotation":
            return self._turn(str(body.get("orientation")))
        shot = await self._upright()
        try:
            action = upright(read_action(route, body), self.turned, (shot.width, shot.height))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise Invalid(f"{route}: {error}") from error
        result = await (await self.device()).step(action)
        if "rejected" in result.info:
            raise Invalid(str(result.info["rejected"]))
        self._shot = result.observation.screenshot
        self.acted.append(key)

    def _turn(self, orientation: str) -> None:
        if orientation not in ROTATIONS:
            raise Invalid(f"orientation: {orientation[:40]!r} is none of {', '.join(ROTATIONS)}")
        self.turned = ROTATIONS.index(orientation)

    async def _sleep(self, device: SimulatedEnv[Any], seconds: str) -> dict[str, Any]:
        try:
            wait = Wait(seconds=float(seconds))
        except ValueError:
            return _ended(1, "", f"sleep: invalid time interval {seconds[:40]!r}")
        self._shot = (await device.step(wait)).observation.screenshot
        return _ended(0)

    async def command(self, command: str, envs: Mapping[str, str]) -> dict[str, Any]:
        """Run a command: ``cuarl-device``, ``sleep``, ``echo``, ``true``, and ``settings`` with values of its own.

        In a stock box: what Android's shell knows.
        """
        device = await self.device()
        if self._android is not None and isinstance(device, SimEnv):
            status, output = await self._android.answer(device, command)
            self._shot = device.picture()
            return _ended(status, output)
        match command.split():
            case ["cuarl-device", verb]:
                return _ended(*await simulate(device, self.set_up, verb, envs, {}))
            case ["sleep", seconds]:
                return await self._sleep(device, seconds)
            case ["settings", "put", space, key, value]:
                self.settings[space, key] = value
                return _ended(0)
            case ["settings", "get", space, key]:
                return _ended(0, self.settings.get((space, key), "null") + "\n")
            case ["echo", *words]:
                return _ended(0, " ".join(words) + "\n")
            case ["true"]:
                return _ended(0)
            case _:
                return _ended(UNKNOWN_COMMAND, "", f"{command[:100]}: not found")


def read_action(route: str, body: Mapping[str, Any]) -> Action:
    """The action that a request means. Raises KeyError, TypeError or ValueError."""
    reader = _READERS.get(route)
    if reader is None:
        raise ValueError("this server has no such action")
    action = ACTION.validate_python(reader(body))
    if too_much := excess(action):
        raise ValueError(too_much)
    return action


def upright(action: Action, turned: int, size: tuple[int, int]) -> Action:
    """An action on a display of ``size`` that was turned by so many quarters, where it is upright."""

    def back(x: int, y: int) -> tuple[int, int]:
        width, height = size
        return ((x, y), (width - 1 - y, x), (width - 1 - x, height - 1 - y), (y, height - 1 - x))[turned]

    if isinstance(action, Scroll):
        ways = ("up", "right", "down", "left")
        action = action.model_copy(update={"direction": ways[(ways.index(action.direction) + turned) % 4]})
    at = points(action)
    return placed(action, [back(*point) for point in at]) if at and turned else action


def _ended(status: int, output: str = "", errors: str = "") -> dict[str, Any]:
    return {"exitCode": status, "stdout": output, "stderr": errors}


def _at(point: Mapping[str, Any]) -> dict[str, int]:
    return {"x": int(point["x"]), "y": int(point["y"])}


def _ms(duration: str) -> int:
    if len(duration) > 20:
        raise ValueError(f"not a duration: {duration[:20]!r}…")
    for unit, factor in (("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)):
        if duration.endswith(unit):
            return max(1, round(float(duration[: -len(unit)]) * factor))
    raise ValueError(f"not a duration: {duration!r}")


def _click(body: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "click", **_at(body), "button": body.get("button", "left"), "count": 2 if body.get("double") else 1}


def _swipe(body: Mapping[str, Any]) -> dict[str, Any]:
    end = _at(body["end"])
    ends = {**_at(body["start"]), "x2": end["x"], "y2": end["y"]}
    return {"kind": "swipe", **ends, "duration_ms": _ms(body.get("duration", "500ms"))}


def _drag(body: Mapping[str, Any]) -> dict[str, Any]:
    path = [_at(point) for point in body.get("path") or (body["start"], body["end"])]
    each = _ms(body.get("duration", "50ms"))
    return {"kind": "drag", "path": [(p["x"], p["y"]) for p in path], "duration_ms": each * max(1, len(path) - 1)}


def _scroll(body: Mapping[str, Any]) -> dict[str, Any]:
    across, down = float(body.get("scrollX", 0)), float(body.get("scrollY", 0))
    far = across if abs(across) > abs(down) else down
    ways = ("right", "left") if abs(across) > abs(down) else ("down", "up")
    return {"kind": "scroll", **_at(body), "direction": ways[far < 0], "amount": max(1, round(abs(far)))}


def _keys(body: Mapping[str, Any]) -> dict[str, Any]:
    strange = [key for key in body["keys"] if key not in KEYS]
    if strange:
        raise ValueError(f"there is no key {str(strange[0])[:40]!r}")
    return {"kind": "key", "keys": [_XDOTOOL.get(key, key) for key in body["keys"]]}


_READERS: Mapping[str, Any] = {
    "tap": _click, "click": _click, "swipe": _swipe, "drag": _drag, "scroll": _scroll, "press-key": _keys,
    "long-press": lambda b: {"kind": "long_press", **_at(b), "duration_ms": _ms(b.get("duration", "1s"))},
    "move": lambda b: {"kind": "move", **_at(b)},
    "type": lambda b: {"kind": "type", "text": b["text"], "submit": b.get("pressEnter", False)},
    "press-button": lambda b: {"kind": "button", "name": _FROM_WIRE[b["buttons"][0]]},
}  # fmt: skip
