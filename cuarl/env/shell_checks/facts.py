"""What the shell of any Android tells, in the words of the simulated phone's state, and how it is set.

Written from Android's public documentation and source for API 33 to 36: ``android.provider.Settings``, and the commands
``settings``, ``svc``, ``cmd``, ``dumpsys``, ``pm``, ``am`` and ``content``. What a shell can't read or set is not here:
icons and folders of the launcher, which page of Settings is shown, what an app keeps to itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

FOLDERS = ("Download", "Pictures", "Documents", "DCIM", "Movies", "Music")
"""Folders of /sdcard that are looked into for files."""
ALIASES: Mapping[str, tuple[str, ...]] = {
    "com.android.dialer": ("com.google.android.dialer",),
    "com.android.messaging": ("com.google.android.apps.messaging", "com.android.mms"),
    "com.android.camera": ("com.android.camera2", "com.google.android.GoogleCamera"),
    "com.android.gallery": ("com.android.gallery3d", "com.google.android.apps.photos"),
    "com.android.contacts": ("com.google.android.contacts",),
    "com.android.calendar": ("com.google.android.calendar",),
    "com.android.deskclock": ("com.google.android.deskclock",),
    "com.android.documentsui": ("com.google.android.documentsui",),
    "com.android.maps": ("com.google.android.apps.maps",),
}
"""Packages of the simulated phone's apps, and what they are called on devices."""
SHELL = "com.android.shell"
_CANONICAL = {other: package for package, others in ALIASES.items() for other in others}
_FOCUS = re.compile(r"mCurrentFocus=Window\{\S+ \S+ ([^\s/}]+)")
_SCALES = {0.85: "Small", 1.0: "Default", 1.15: "Large"}
_MUSIC = "cmd media_session volume --stream 3"
_VOLUME = re.compile(r"volume is (\d+) in range \[(\d+)\.\.(\d+)\]")

_HOME = "cmd package resolve-activity --brief -a android.intent.action.MAIN -c android.intent.category.HOME"
_MANUAL = ("settings put system screen_brightness_mode 0",)

Put = Callable[[Any, str], Sequence[str]]
"""The commands that set a value, given what the reading printed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value of the state: the command that prints it, what that means, and how it is set."""

    command: str
    read: Callable[[str], Any]
    """The value of what was printed; None where the device does not tell."""
    put: Put | None = None
    """None for what can't be set by a shell."""
    before: tuple[str, ...] = ()
    """Commands without which neither the shell nor a person could change it."""
    after: tuple[str, ...] = ()
    """Commands that undo ``before``."""
    changes: tuple[str, ...] = ()
    """Globs of state paths that change with it by themselves."""

    steady: bool = True
    """Whether it stays as it is unless somebody changes it."""

    @property
    def guarded(self) -> bool:
        """Whether it is looked at in every task, since a change that nobody asked for would be a side effect."""
        return self.steady and self.command.startswith("settings get")


def canonical(package: str) -> str:
    """What the simulated phone calls a package."""
    return _CANONICAL.get(package, package)


# --- settings ------------------------------------------------------------------------------------------------------


def _setting(place: str, read: Callable[[str], Any], write: Callable[[Any], object], put: Put | None = None) -> Fact:
    return Fact(
        command=f"settings get {place}",
        read=lambda text: read("" if text.strip() == "null" else text.strip()),
        put=put or (lambda value, _: [f"settings put {place} {write(value)}"]),
    )


def _flag(place: str, *, on: int = 1, off: Sequence[str] = ("", "0"), put: Put | None = None) -> Fact:
    """A setting with a number for off, which is what it is where it is unset."""
    return _setting(place, lambda text: text not in off, lambda value: on * value, put)


def _number(place: str) -> Fact:
    return _setting(place, lambda text: int(text) if text.lstrip("-").isdecimal() else None, int)


def _service(on: str, off: str) -> Put:
    return lambda value, _: [on if value else off]


def _font(text: str) -> str | None:
    try:
        return _SCALES.get(round(float(text or 1), 2), "Large")
    except ValueError:
        return None


def _battery(fact: Fact) -> Fact:
    """A device that charges has no Battery Saver, so it is told that it does not."""
    return replace(fact, before=("dumpsys battery unplug",), after=("dumpsys battery reset",))


def _percent(text: str) -> int | None:
    found = _VOLUME.search(text)
    return round(100 * int(found[1]) / int(found[3])) if found and int(found[3]) else None


def _set_percent(value: Any, printed: str) -> Sequence[str]:
    found = _VOLUME.search(printed)
    return [f"{_MUSIC} --set {round(int(found[3]) * value / 100)}"] if found else []


# --- what is there, and what is shown ------------------------------------------------------------------------------


def _apps(text: str) -> dict[str, dict[str, Any]]:
    packages = (line.removeprefix("package:") for line in text.split() if line.startswith("package:"))
    return {name.rpartition(".")[2]: {"package": canonical(name), "installed": True} for name in packages}


def _files(text: str) -> list[dict[str, Any]]:
    """Of ``ls -1p``: folders end in a slash, and each listing begins with its path and a colon."""
    found, folder = [], ""
    for line in text.splitlines():
        if line.startswith("/sdcard/") and line.endswith(":"):
            folder = line.removeprefix("/sdcard/").removesuffix(":").rstrip("/")
        elif line.strip() and folder and not line.startswith("ls: "):
            found.append({"path": f"{folder}/{line.rstrip('/')}", "folder": line.endswith("/")})
    return found


def _people(text: str) -> list[dict[str, str]]:
    rows = re.findall(r"^Row: \d+ display_name=(.*?), data1=(.*)$", text, re.MULTILINE)
    return [{"name": name, "phone": _local(number)} for name, number in rows]


def _local(number: str) -> str:
    digits = re.sub(r"\D", "", number)
    return f"{digits[:3]}-{digits[3:]}" if len(digits) == 7 else number


def _posted(text: str) -> list[str]:
    return re.findall(rf"NotificationRecord\(\S+ pkg={re.escape(SHELL)} .*?tag=(\S+)", text)


def _post(value: Any, _: str) -> Sequence[str]:
    said = [(shlex.quote(str(one.get("title", ""))), shlex.quote(str(one.get("text", "")))) for one in value]
    return [f"cmd notification post -t {title} cuarl{i} {text}" for i, (title, text) in enumerate(said)]


def _focus(text: str) -> str:
    found = _FOCUS.search(text)
    return found[1] if found else ""


def _at_home(text: str) -> bool | None:
    found = re.search(r"^([\w.]+)/[\w.$]+\s*$", text, re.MULTILINE)
    return None if found is None else _focus(text) == found[1]


FACTS: Mapping[str, Fact] = {
    "network.wifi.enabled": _flag(
        "global wifi_on",
        off=("", "0", "3"),  # 3: airplane mode has switched it off
        put=_service("svc wifi enable", "svc wifi disable"),
    ),
    "network.bluetooth.enabled": _flag(
        "global bluetooth_on", put=_service("svc bluetooth enable", "svc bluetooth disable")
    ),
    "network.airplane_mode": replace(
        _flag(
            "global airplane_mode_on",
            put=_service("cmd connectivity airplane-mode enable", "cmd connectivity airplane-mode disable"),
        ),
        changes=("network.wifi.enabled", "network.bluetooth.enabled"),
    ),
    "location.enabled": _flag(
        "secure location_mode",
        put=_service("cmd location set-location-enabled true", "cmd location set-location-enabled false"),
    ),
    "display.timeout_ms": _number("system screen_off_timeout"),
    # adaptive brightness changes it by itself
    "display.brightness": replace(
        _setting(
            "system screen_brightness",
            lambda text: max(1, int(text)) if text.isdecimal() else None,
            int,
            lambda value, _: [*_MANUAL, f"settings put system screen_brightness {value}"],
        ),
        steady=False,
    ),
    "display.auto_rotate": _flag("system accelerometer_rotation"),
    "display.dark_theme": _setting(
        "secure ui_night_mode", lambda text: text == "2", int, _service("cmd uimode night yes", "cmd uimode night no")
    ),
    "display.font_size": _setting(
        "system font_scale", _font, lambda value: {v: k for k, v in _SCALES.items()}.get(value, 1.0)
    ),
    "display.screensaver": _flag("secure screensaver_enabled"),
    "sound.dnd": _flag("global zen_mode", put=_service("cmd notification set_dnd on", "cmd notification set_dnd off")),
    "sound.vibrate_on_ring": _flag("system vibrate_when_ringing"),
    "sound.media": Fact(command=f"{_MUSIC} --get", read=_percent, put=_set_percent),
    "battery.saver": _battery(
        _flag("global low_power", put=_service("cmd power set-mode 1", "cmd power set-mode 0")),
    ),
    "battery.saver_schedule": _setting(
        "global low_power_trigger_level",
        lambda text: f"At {text}%" if text not in ("", "0") else "None",
        lambda value: re.sub(r"\D", "", value) or 0,
    ),
    "battery.show_percentage": _flag("system status_bar_show_battery_percent"),
    "battery.level": Fact(
        command="dumpsys battery",
        read=lambda text: int(found[1]) if (found := re.search(r"^\s*level: (\d+)", text, re.MULTILINE)) else None,
        put=lambda value, _: [f"dumpsys battery set level {value}"],
        after=("dumpsys battery reset",),
    ),
    "system.auto_time": _flag("global auto_time"),
    "system.developer_options": _flag("global development_settings_enabled"),
    "system.stay_awake": _flag("global stay_on_while_plugged_in", on=7),
    "system.show_taps": _flag("system show_touches"),
    "system.language": Fact(
        command="settings get system system_locales",
        read=lambda text: re.split(r"[-_,\s]", text)[0].replace("null", ""),
    ),
    "apps": Fact(command="pm list packages", read=_apps),
    "apps.chrome.running": Fact(
        command="pidof com.android.chrome",
        read=lambda text: bool(text.strip()),
        put=lambda value, _: [
            "am start -a android.intent.action.VIEW -d about:blank com.android.chrome"
            if value
            else "am force-stop com.android.chrome",
            "input keyevent 3",
        ],
    ),
    "files": Fact(command=f"ls -1p {' '.join(f'/sdcard/{name}' for name in FOLDERS)}", read=_files),
    "contacts": Fact(
        command="content query --uri content://com.android.contacts/data/phones --projection display_name:data1",
        read=_people,
    ),
    "notifications.items": Fact(command="dumpsys notification --noredact", read=_posted, put=_post),
    "ui.current_app": Fact(command="dumpsys window", read=lambda text: canonical(_focus(text))),
    "ui.is_home_screen": Fact(command=f"{_HOME}; dumpsys window", read=_at_home),
    "ui.shade_open": Fact(command="dumpsys window", read=lambda text: _focus(text).startswith("NotificationShade")),
}
"""By the path in the simulated phone's state."""

_PAGES = {
    "main": "SETTINGS", "display": "DISPLAY_SETTINGS", "sound": "SOUND_SETTINGS", "wifi": "WIFI_SETTINGS",
    "bluetooth": "BLUETOOTH_SETTINGS", "date_time": "DATE_SETTINGS", "storage": "INTERNAL_STORAGE_SETTINGS",
    "language": "LOCALE_SETTINGS",
}  # fmt: skip


def start(path: str, value: Any) -> Sequence[str] | None:
    """The commands that show the page or the app that an episode starts with; None where a shell can't."""
    if path == "ui.page" and str(value).startswith("settings/"):
        action = _PAGES.get(str(value).removeprefix("settings/"))
        return None if action is None else [f"am start -a android.settings.{action}"]
    if (path, value) == ("ui.app", "clock"):
        return ["am start -a android.intent.action.SHOW_ALARMS"]
    return None
