"""A simulated phone with Android's own shell and nothing of cuarl's: what it prints has the form of API 33 to 36."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from cuarl.env.sim.phone import SimEnv
from cuarl.local.adb_phone import SETTINGS, FakePhone, Reply, Setting
from cuarl.sim.phone import rules
from cuarl.sim.phone.records import Notification
from cuarl.sim.phone.world import World
from cuarl.types import Button, OpenApp

MORE: Mapping[tuple[str, str], Setting] = {
    ("system", "accelerometer_rotation"): Setting("display.auto_rotate", 1),
    ("secure", "screensaver_enabled"): Setting("display.screensaver", 1),
    ("system", "vibrate_when_ringing"): Setting("sound.vibrate_on_ring", 1),
    ("system", "status_bar_show_battery_percent"): Setting("battery.show_percentage", 1),
    ("global", "development_settings_enabled"): Setting("system.developer_options", 1),
    ("global", "stay_on_while_plugged_in"): Setting("system.stay_awake", 7),
    ("system", "show_touches"): Setting("system.show_taps", 1),
}
"""Settings that this phone keeps in its state besides ``adb_phone.SETTINGS``."""
SWITCHES = {
    ("wifi", "enable"): ("network.wifi.enabled", True), ("wifi", "disable"): ("network.wifi.enabled", False),
    ("bluetooth", "enable"): ("network.bluetooth.enabled", True),
    ("bluetooth", "disable"): ("network.bluetooth.enabled", False),
    ("connectivity", "airplane-mode", "enable"): ("network.airplane_mode", True),
    ("connectivity", "airplane-mode", "disable"): ("network.airplane_mode", False),
    ("uimode", "night", "yes"): ("display.dark_theme", True), ("uimode", "night", "no"): ("display.dark_theme", False),
    ("notification", "set_dnd", "on"): ("sound.dnd", True), ("notification", "set_dnd", "off"): ("sound.dnd", False),
    ("power", "set-mode", "1"): ("battery.saver", True), ("power", "set-mode", "0"): ("battery.saver", False),
    ("location", "set-location-enabled", "true"): ("location.enabled", True),
    ("location", "set-location-enabled", "false"): ("location.enabled", False),
}  # fmt: skip
"""What ``svc`` and ``cmd`` switch."""
SCREENS = {"SETTINGS": "main", "DISPLAY_SETTINGS": "display", "SOUND_SETTINGS": "sound", "WIFI_SETTINGS": "wifi"}
_SCALE = {"Small": "0.85", "Default": "1.0", "Large": "1.15"}
_STEPS = 20
"""Of the media volume."""


class StockPhone(FakePhone):
    """One device without ``cuarl-device``."""

    def __init__(self, serial: str, profile: str = "small", *, clutter: float = 0.1) -> None:
        super().__init__(serial, profile, clutter=clutter)
        self.posted: dict[str, str] = {}
        """Titles of what the shell has posted, by tag."""

    async def answer(self, sim: SimEnv, command: str) -> tuple[int, str]:
        """Exit status and output of a command on a phone that somebody else has set up."""
        self._sim = sim
        printed, _, status = (await self.run(f"{command}; echo $?")).decode().rstrip("\n").rpartition("\n")
        return int(status), f"{printed}\n" if printed else ""

    async def world(self) -> World:
        """The phone's world as it is."""
        world = (await self.sim()).world
        assert world is not None
        return world

    async def change(self, path: str, value: Any) -> Reply:
        """Write a value into the phone's state, consequences included."""
        sim = await self.sim()
        assert sim.world is not None
        sim.world = rules.put(sim.world, path, value)
        return 0, b""

    async def _program(self, verb: str, assigned: Mapping[str, str]) -> Reply:
        return 127, b"/system/bin/sh: cuarl-device: inaccessible or not found\n"

    async def _command(self, words: list[str]) -> Reply:
        tool = _TOOLS.get(words[0] if words else "")
        found = await tool(self, words[1:]) if tool else None
        return found if found is not None else await super()._command(words)

    async def _settings(self, words: Sequence[str]) -> Reply | None:
        world = await self.world()
        match words:
            case ["get", "system", "font_scale"]:
                return 0, f"{_SCALE[str(world.get('display.font_size'))]}\n".encode()
            case ["put", "system", "font_scale", value]:
                return await self.change("display.font_size", {v: k for k, v in _SCALE.items()}[value])
            case ["get", "global", "low_power_trigger_level"]:
                return 0, f"{re.sub('[^0-9]', '', str(world.get('battery.saver_schedule'))) or 0}\n".encode()
            case ["put", "global", "low_power_trigger_level", value]:
                return await self.change("battery.saver_schedule", "None" if value == "0" else f"At {value}%")
            case ["get", "system", "system_locales"]:
                return 0, f"{world.get('system.language')}-XX,en-US\n".encode()
            case ["list", space]:
                _, printed = await super()._settings(words) or (0, b"")
                more = {key: one for (name, key), one in MORE.items() if name == space}
                rows = (f"{key}={(one.on or 1) * int(world.get(one.path))}\n" for key, one in more.items())
                return 0, printed + "".join(rows).encode()
            case ["get", space, key] if (space, key) in MORE:
                known = MORE[space, key]
                return 0, f"{(known.on or 1) * int(world.get(known.path))}\n".encode()
            case ["put", space, key, value] if (space, key) in MORE:
                return await self.change(MORE[space, key].path, value != "0")
            case ["get", space, key] if (space, key) in SETTINGS or (space, key) in self.kept:
                return None
            case ["get", _, _]:
                return 0, b"null\n"
        return None

    async def _svc(self, words: Sequence[str]) -> Reply | None:
        return await self.change(*SWITCHES[tuple(words)]) if tuple(words) in SWITCHES else None

    async def _cmd_stock(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["media_session", "volume", "--stream", "3", "--get"]:
                steps = round((await self.world()).get("sound.media") * _STEPS / 100)
                head = "[V] will control stream=3 (STREAM_MUSIC)\n[V] will get volume\n[V] Connecting to AudioService\n"
                return 0, f"{head}[V] volume is {steps} in range [0..{_STEPS}]\n".encode()
            case ["media_session", "volume", "--stream", "3", "--set", value]:
                return await self.change("sound.media", int(value) * 100 // _STEPS)
            case ["notification", "post", "-t", title, tag, text]:
                items = [one for one in (await self.world()).state.notifications.items if one.title != title]
                self.posted[tag] = title
                return await self.change("notifications.items", (*items, Notification("settings", title, text)))
            case ["package", "resolve-activity", "--brief", "-a", _, "-c", "android.intent.category.HOME"]:
                return (
                    0,
                    b"priority=0 preferredOrder=0 match=0x108000 isDefault=true\ncom.android.launcher3/.Launcher\n",
                )
        return await self._svc(words)

    async def _dumpsys_stock(self, words: Sequence[str]) -> Reply | None:
        world = await self.world()
        match words:
            case ["battery"]:
                level = world.get("battery.level")
                return 0, f"Current Battery Service state:\n  AC powered: false\n  level: {level}\n".encode()
            case ["battery", "set", "level", value]:
                return await self.change("battery.level", int(value))
            case ["battery", "unplug" | "reset"]:
                return 0, b""
            case ["notification", "--noredact"]:
                tags = {title: tag for tag, title in self.posted.items()}
                rows = (_row(one, tags.get(one.title)) for one in world.state.notifications.items)
                return 0, "".join(["Current Notification Manager state:\n", *rows]).encode()
            case ["window"] if world.ui.overlay == "shade":
                return 0, b"  mCurrentFocus=Window{4a81c0d u0 NotificationShade}\n"
        return None

    async def _am_stock(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["start", "-a", action] if action.removeprefix("android.settings.") in SCREENS:
                return await self._act(OpenApp(name="Settings"))
            case ["start", "-a", "android.intent.action.SHOW_ALARMS"]:
                return await self._act(OpenApp(name="Clock"))
            case ["start", "-a", "android.intent.action.VIEW", "-d", _, "com.android.chrome"]:
                return await self._act(OpenApp(name="Chrome"))
            case ["force-stop", "com.android.chrome"]:
                await self._act(Button(name="home"))
                return await self.change("apps.chrome.running", False)
        return None

    async def _pidof(self, words: Sequence[str]) -> Reply:
        running = (await self.world()).get("apps.chrome.running")
        return (0, b"4242\n") if running else (1, b"")

    async def _ls_stock(self, words: Sequence[str]) -> Reply | None:
        if words[:1] != ["-1p"]:
            return None
        files, printed = (await self.world()).state.files, ""
        for folder in words[1:]:
            place = folder.removeprefix("/sdcard/")
            if not any(one.path == place for one in files):
                printed += f"ls: {folder}: No such file or directory\n"
                continue
            names = [
                f"{one.path.rpartition('/')[2]}{'/' if one.folder else ''}\n"
                for one in files
                if one.path.rpartition("/")[0] == place
            ]
            printed += f"{folder}:\n{''.join(names)}\n"
        return 0, printed.encode()

    async def _content_stock(self, words: Sequence[str]) -> Reply | None:
        match words:
            case ["query", "--uri", uri, "--projection", "display_name:data1"] if uri.endswith("/data/phones"):
                people = (await self.world()).state.contacts
                rows = [f"Row: {n} display_name={one.name}, data1={one.phone}\n" for n, one in enumerate(people)]
                return 0, "".join(rows).encode()
            case ["delete", "--uri", uri, "--where", where] if uri.endswith("/raw_contacts"):
                name = where.partition("'")[2].rstrip("'")
                people = (await self.world()).state.contacts
                return await self.change("contacts", tuple(one for one in people if one.name != name))
        return None

    async def _rm_stock(self, words: Sequence[str]) -> Reply | None:
        if words[:1] != ["-rf"]:
            return None
        gone = [word.removeprefix("/sdcard/") for word in words[1:]]
        files = (await self.world()).state.files
        return await self.change("files", tuple(one for one in files if one.path not in gone))


def _row(one: Notification, tag: str | None) -> str:
    package = f"com.android.{one.app}" if tag is None else "com.android.shell"
    return f"    NotificationRecord(0x0c64d7f2: pkg={package} user=UserHandle{{0}} id=2020 tag={tag} importance=3)\n"


_Tool = Callable[[StockPhone, Sequence[str]], Awaitable[Reply | None]]
_TOOLS: Mapping[str, _Tool] = {
    "am": StockPhone._am_stock, "cmd": StockPhone._cmd_stock, "content": StockPhone._content_stock,
    "dumpsys": StockPhone._dumpsys_stock, "ls": StockPhone._ls_stock, "pidof": StockPhone._pidof,
    "rm": StockPhone._rm_stock, "settings": StockPhone._settings, "svc": StockPhone._svc,
}  # fmt: skip
