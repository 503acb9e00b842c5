"""The device of the local adb server.

A simulated phone that understands the shell commands that cuarl sends, and few others.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from PIL import Image

from cuarl.env.device_program import PROGRAM, UNKNOWN_COMMAND, simulate
from cuarl.env.limits import excess
from cuarl.env.sim.phone import SimEnv
from cuarl.errors import CuarlError
from cuarl.local.adb_shell import understood
from cuarl.local.hierarchy import dump
from cuarl.sim.device.bag import Bag
from cuarl.sim.phone import rules
from cuarl.sim.phone.records import App
from cuarl.sim.phone.world import World
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Button, OpenApp, Screenshot, Wait

EMPTY = TaskInstance(task_id="device", goal="an unused phone", checks=())
FAILURE = 1
SILENT = frozenset({"wm", "true"})
ROTATION = ("system", "user_rotation")
Reply = tuple[int, bytes]


class Setting(NamedTuple):
    """Where the simulated phone keeps one of Android's settings, and what on and off are there."""

    path: str
    on: int | None = None
    """Number for true; None for a setting that is a number itself."""


SETTINGS: Mapping[tuple[str, str], Setting] = {
    ("global", "wifi_on"): Setting("network.wifi.enabled", 1),
    ("global", "bluetooth_on"): Setting("network.bluetooth.enabled", 1),
    ("global", "airplane_mode_on"): Setting("network.airplane_mode", 1),
    ("global", "low_power"): Setting("battery.saver", 1),
    ("global", "auto_time"): Setting("system.auto_time", 1),
    ("global", "zen_mode"): Setting("sound.dnd", 1),
    ("secure", "location_mode"): Setting("location.enabled", 3),
    ("secure", "ui_night_mode"): Setting("display.dark_theme", 2),
    ("system", "screen_brightness"): Setting("display.brightness"),
    ("system", "screen_off_timeout"): Setting("display.timeout_ms"),
}  # fmt: skip
_BUTTON_OF = {3: "home", 4: "back", 24: "volume_up", 25: "volume_down", 26: "power", 82: "menu", 187: "recents"}
_KEY_OF = {
    19: "up", 20: "down", 21: "left", 22: "right", 57: "alt", 59: "shift", 61: "tab", 62: "space", 66: "Return",
    67: "BackSpace",
    92: "page_up", 93: "page_down", 111: "escape", 112: "Delete", 113: "ctrl", 115: "caps_lock", 117: "super",
    122: "home",
    123: "end", 124: "insert", 160: "kp_enter", **{7 + n: str(n) for n in range(10)},
    **{29 + n: chr(97 + n) for n in range(26)},
}  # fmt: skip
"""Key codes of Android (``android.view.KeyEvent``) in xdotool's names."""
UNICODE_IME = "com.android.adbkeyboard/.AdbIME"
"""ADBKeyBoard's name in the list of keyboards."""
_PERMISSIONS = {
    "CAMERA": "camera",
    "RECORD_AUDIO": "microphone",
    "ACCESS_FINE_LOCATION": "location",
    "READ_CONTACTS": "contacts",
}


class FakePhone:
    """One device.

    ``gone`` takes it off the server, ``drop_next`` breaks the connection of so many commands after they were carried
    out, ``printed`` is what ``screencap`` prints before and behind its picture; ``halves`` so many pictures to come are
    cut. ``hang`` never answers, ``black`` shows so many black pictures; ``asleep`` shows nothing else.
    """

    def __init__(self, serial: str, profile: str = "small", *, clutter: float = 0.1) -> None:
        self.serial, self.profile, self.clutter = serial, profile, clutter
        self.gone = self.hang = self.asleep = False
        self.drop_next = self.black = self.halves = 0
        self.printed = (b"", b"")
        self.kept: dict[tuple[str, str], str] = {}
        self.files: dict[str, str] = {}
        self.snapshots: dict[str, World] = {}
        self.ran: list[str] = []
        """Every command line, in order."""
        self._sim: SimEnv | None = None
        self._path: list[tuple[int, int]] = []
        self.restart()

    def restart(self) -> None:
        """Start anew, as after a crash: what the settings keep is kept."""
        self.boot = secrets.token_hex(8)

    async def sim(self) -> SimEnv:
        """The phone itself."""
        return self._sim or await self.set_up(EMPTY, 0)

    async def set_up(self, task: TaskInstance, seed: int) -> SimEnv:
        """Start anew with a task."""
        sim = SimEnv(self.profile, clutter=self.clutter)
        await sim.reset(task, seed)
        self._sim = sim
        return sim

    async def picture(self) -> Screenshot:
        """What is shown: turned to its left if the settings say so."""
        shot = (await self.sim()).picture()
        if self.asleep or self.black:
            self.black = max(0, self.black - 1)
            return Screenshot(Image.new("RGB", (shot.width, shot.height)))
        return Screenshot(shot.image.transpose(Image.Transpose.ROTATE_90)) if self._turned else shot

    async def load(self, name: str) -> bool:
        """Go back to a snapshot; whether there is one of that name."""
        if name in self.snapshots:
            (await self.sim()).world = self.snapshots[name]
        return name in self.snapshots

    async def run(self, line: str) -> bytes:
        """What a shell prints for ``line``: commands joined by ``;`` or ``&&``, of which ``echo`` knows ``$?``."""
        self.ran.append(line)
        while self.hang:
            await asyncio.sleep(0.05)
        printed, status = b"", 0
        try:
            commands = understood(line)
        except ValueError as error:
            return f"/system/bin/sh: syntax error: {error}\n".encode()
        for words, skip_on_failure in commands:
            if skip_on_failure and status:
                continue
            if words[:1] == ["echo"]:
                printed += " ".join(words[1:]).replace("$?", str(status)).encode() + b"\n"
                continue
            status, output = await self._command(words)
            printed += output
        return printed

    @property
    def _turned(self) -> bool:
        return self.kept.get(ROTATION) == "1"

    async def _command(self, words: list[str]) -> Reply:
        assigned = dict(word.split("=", 1) for word in words if word.startswith("CUARL_") and "=" in word)
        name, *rest = words[len(assigned) :] or [""]
        if name in SILENT:
            return 0, b""
        if name == PROGRAM:
            return await self._program(rest[0] if rest else "", assigned)
        tool = _TOOLS.get(name)
        try:
            found = await tool(self, rest) if tool else None
        except (ValueError, LookupError, OverflowError, CuarlError) as error:  # of the words, which the tools read
            return FAILURE, f"Error: {name}: {str(error)[:200]}\n".encode()
        return found or (UNKNOWN_COMMAND, f"{' '.join(words)[:100]}: not found\n".encode())

    async def _program(self, verb: str, assigned: Mapping[str, str]) -> Reply:
        apps = {app.name: app.package for app in await self._apps() if app.icon}
        status, output, errors = await simulate(await self.sim(), self.set_up, verb, assigned, apps)
        return status, (output + errors).encode()

    # --- Android's own commands ------------------------------------------------------------------------------------

    async def _screencap(self, words: Sequence[str]) -> Reply:
        before, behind = self.printed
        data = before + (await self.picture()).png() + behind
        if self.halves:
            self.halves -= 1
            data = data[: len(data) // 2]
        return 0, data

    async def _settings(self, words: Sequence[str]) -> Reply | None:
        sim = await self.sim()
        match words:
            case ["get", space, key]:
                known = SETTINGS.get((space, key))
                if known is None:
                    return 0, self.kept.get((space, key), "null").encode() + b"\n"
                return 0, f"{_told(_world(sim).get(known.path), known)}\n".encode()
            case ["put", space, key, value]:
                known = SETTINGS.get((space, key))
                if known is None:
                    self.kept[space, key] = value
                else:
                    number = int(value)
                    sim.world = rules.put(_world(sim), known.path, number if known.on is None else number == known.on)
                return 0, b""
            case ["list", space]:
                world = _world(sim)
                here = {key: setting for (name, key), setting in SETTINGS.items() if name == space}
                rows = {key: str(_told(world.get(one.path), one)) for key, one in here.items()}
                rows |= {key: value for (name, key), value in self.kept.items() if name == space}
                return 0, "".join(f"{key}={value}\n" for key, value in sorted(rows.items())).encode()
            case ["delete", space, key]:
                self.kept.pop((space, key), None)
                return 0, b"Deleted 1 rows\n"
        return None

    async def _ime(self, words: Sequence[str]) -> Reply:
        return 0, UNICODE_IME.encode() + b"\n" if words[:1] == ["list"] else b""

    async def _pm(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["list", "packages"]:
                return 0, "".join(f"package:{name}\n" for name in ["android", *await self._packages()]).encode()
            case ["clear", package] if package in await self._packages():
                return 0, b"Success\n"
            case ["clear", _]:
                return FAILURE, b"Failed\n"
        return None

    async def _cmd(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["package", "resolve-activity", "--brief", "-c", _, package]:
                shown = [app.package for app in await self._apps() if app.icon]
                found = f"priority=0 isDefault=false\n{package}/.Main\n" if package in shown else "No activity found\n"
                return 0, found.encode()
        return None

    async def _am(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["start", "-n", activity]:
                return await self._act(OpenApp(name=activity.partition("/")[0]))
            case ["force-stop", package]:
                return await self._force_stop(package)
            case ["broadcast", "-a", "ADB_INPUT_B64", "--es", "msg", encoded]:
                return await self._act({"kind": "type", "text": base64.b64decode(encoded).decode()})
        return None

    async def _force_stop(self, package: str) -> Reply:
        """An app that is stopped has forgotten on which of its screens it was."""
        sim = await self.sim()
        world = _world(sim)
        app = next((one for one in world.state.apps if one.package == package), None)
        if app is None:
            return 0, b""
        if world.ui.app == app.key:
            await self._act(Button(name="home"))
        world = _world(sim)
        sim.world = world.with_ui(stacks=world.ui.stacks.without(app.key), scroll=Bag())
        return 0, b""

    async def _dumpsys(self, words: Sequence[str]) -> Reply | None:
        world = _world(await self.sim())
        match words:
            case ["power"]:
                return 0, f"mWakefulness={'Asleep' if self.asleep else 'Awake'}\n".encode()
            case ["window"]:
                app = world.app(world.ui.app)
                shown = f"{app.package}/.Main" if app else "com.android.launcher3/.Launcher"
                return 0, f"  mCurrentFocus=Window{{1f2e3d u0 {shown}}}\n".encode()
            case ["notification"]:
                return 0, b"    NotificationRecord(0x0)\n" * len(world.state.notifications.items)
            case ["package", package]:
                found = [app for app in await self._apps() if app.package == package]
                lines = [
                    f"android.permission.{p}: granted={str(getattr(a, f)).lower()}\n"
                    for a in found
                    for p, f in _PERMISSIONS.items()
                ]
                return 0, "".join(lines).encode()
        return None

    async def _content(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["query", "--uri", "content://com.android.contacts/contacts", "--projection", "display_name"]:
                people = _world(await self.sim()).state.contacts
                rows = [f"Row: {n} display_name={one.name}\n" for n, one in enumerate(people)]
                return 0, "".join(rows or ["No result found.\n"]).encode()
        return None

    async def _input(self, words: Sequence[str]) -> Reply | None:
        await self.sim()
        match words:
            case ["tap", x, y, *more]:
                return await self._act({"kind": "click", **self._at(x, y), "count": int(more[0]) if more else 1})
            case ["swipe", x, y, x2, y2, ms] if (x, y) == (x2, y2):
                return await self._act({"kind": "long_press", **self._at(x, y), "duration_ms": int(ms)})
            case ["swipe", x, y, x2, y2, ms]:
                end = self._at(x2, y2)
                ends = {**self._at(x, y), "x2": end["x"], "y2": end["y"]}
                return await self._act({"kind": "swipe", **ends, "duration_ms": int(ms)})
            case ["draganddrop", x, y, x2, y2, ms]:
                path = [tuple(self._at(*point).values()) for point in ((x, y), (x2, y2))]
                return await self._act({"kind": "drag", "path": path, "duration_ms": int(ms)})
            case ["motionevent", phase, x, y]:
                at = self._at(x, y)
                self._path = [*([] if phase == "DOWN" else self._path), (at["x"], at["y"])]
                return await self._act({"kind": "drag", "path": self._path[:-1]}) if phase == "UP" else (0, b"")
            case ["text", text, *submit]:
                return await self._act({"kind": "type", "text": text, "submit": bool(submit)})
            case ["keyevent", "224"]:
                self.asleep = False
                return 0, b""
            case ["keyevent", code] if int(code) in _BUTTON_OF:
                return await self._act({"kind": "button", "name": _BUTTON_OF[int(code)]})
            case ["keyevent" | "keycombination", *codes]:
                return await self._act({"kind": "key", "keys": [_KEY_OF[int(code)] for code in codes]})
        return None

    async def _uiautomator(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["dump", path]:
                self.files[path] = dump(_world(await self.sim()), turned=int(self._turned))
                return 0, f"UI hierchary dumped to: {path}\n".encode()  # so it is spelt there
        return None

    async def _sleep(self, words: Sequence[str]) -> Reply:
        return await self._act(Wait(seconds=float(words[0])))  # in simulated time

    async def _cat(self, words: Sequence[str]) -> Reply:
        (path,) = words
        if path == "/proc/sys/kernel/random/boot_id":
            return 0, self.boot.encode() + b"\n"
        return (0, self.files[path].encode()) if path in self.files else (FAILURE, b"No such file or directory\n")

    async def _ls(self, words: Sequence[str]) -> Reply:
        folder = words[-1].rstrip("/") + "/"
        names = {path.removeprefix(folder).partition("/")[0] for path in self.files if path.startswith(folder)}
        return (0, "".join(f"{name}\n" for name in names).encode()) if names else (FAILURE, b"No such file\n")

    async def _rm(self, words: Sequence[str]) -> Reply:
        for path in words[1:]:
            self.files.pop(path, None)
        return 0, b""

    async def _getprop(self, words: Sequence[str]) -> Reply:
        return 0, {"sys.boot_completed": b"1\n"}.get(words[0], b"\n")

    # --- the simulator ---------------------------------------------------------------------------------------------

    def _at(self, x: str, y: str) -> dict[str, int]:
        """The pixel of the upright phone under one of what is shown."""
        width = _world(self._sim).profile.width_px
        return {"x": width - 1 - int(y), "y": int(x)} if self._turned else {"x": int(x), "y": int(y)}

    async def _apps(self) -> list[App]:
        return [app for app in _world(await self.sim()).state.apps if app.installed]

    async def _packages(self) -> list[str]:
        return [app.package for app in await self._apps()]

    async def _act(self, action: Any) -> Reply:
        sim = await self.sim()
        read = ACTION.validate_python(action) if isinstance(action, Mapping) else action
        if too_much := excess(read):
            return FAILURE, f"Error: {too_much}\n".encode()
        await sim.step(read)
        return 0, b""  # as on a phone: what has no effect is no error


_Tool = Callable[[FakePhone, Sequence[str]], Awaitable[Reply | None]]
_TOOLS: Mapping[str, _Tool] = {
    "am": FakePhone._am, "cat": FakePhone._cat, "cmd": FakePhone._cmd, "content": FakePhone._content,
    "dumpsys": FakePhone._dumpsys, "getprop": FakePhone._getprop, "ime": FakePhone._ime, "input": FakePhone._input,
    "ls": FakePhone._ls, "pm": FakePhone._pm, "rm": FakePhone._rm, "screencap": FakePhone._screencap,
    "settings": FakePhone._settings, "sleep": FakePhone._sleep, "uiautomator": FakePhone._uiautomator,
}  # fmt: skip


def _told(value: Any, setting: Setting) -> int:
    """A value of the state as Android's settings have it."""
    return int(value) if setting.on is None else setting.on * int(value)


def _world(sim: SimEnv | None) -> World:
    assert sim is not None
    assert sim.world is not None
    return sim.world
