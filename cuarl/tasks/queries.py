"""The recipe's validators by name (``validation_query`` with ``expected_result``), as checks on state paths.

One table serves every backend that tells its state in the same tree. What the recipe's shell commands got wrong is not
kept: a notification count of zero can be seen, an app is looked up by its exact package, and 83 is not found in 183.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cuarl.suggest import did_you_mean
from cuarl.tasks.task import Check, Task, placeholders

Builder = Callable[[Any], Check]

_SIZE = r"(?i)(?<![\w.,])\d[\d.,]*\s*(?:bytes?|[kmgt]i?b)\b"
_ONE_MIB_KB = 1024
_STORAGE_ROOTS = ("/sdcard/", "/storage/emulated/0/", "~/")
_PERMISSIONS = {
    "android.permission.CAMERA": "camera",
    "android.permission.RECORD_AUDIO": "microphone",
    "android.permission.ACCESS_FINE_LOCATION": "location",
    "android.permission.ACCESS_COARSE_LOCATION": "location",
    "android.permission.READ_CONTACTS": "contacts",
    "android.permission.POST_NOTIFICATIONS": "notifications",
}


def _equals(path: str, kind: type) -> Builder:
    def build(expected: Any) -> Check:
        if not placeholders(expected) and type(expected) is not kind:
            raise ValueError(f"expected_result must be {_KIND_NAMES[kind]}, not {expected!r}")
        return Check(path=path, value=expected)

    return build


_KIND_NAMES = {bool: "true or false", int: "a whole number", str: "a text"}


def _text(path: str, op: str) -> Builder:
    def build(expected: Any) -> Check:
        if isinstance(expected, bool) or not isinstance(expected, str | int | float) or expected == "":
            raise ValueError(f"expected_result must be the text to look for, not {expected!r}")
        return Check.model_validate({"path": path, "op": op, "value": expected})

    return build


def _notification_count(expected: Any) -> Check:
    if type(expected) is not int or expected != 0:
        raise ValueError(f"expected_result must be 0, not {expected!r}; use checks on notifications.items for others")
    return Check(path="notifications.items", op="empty")


def _cache_cleared(app: str) -> Builder:
    def build(expected: Any) -> Check:
        if expected is not True:
            raise ValueError(f"expected_result must be true, not {expected!r}")
        return Check(path=f"apps.{app}.cache_kb", op="le", value=_ONE_MIB_KB - 1)

    return build


def _app_installed(expected: Any) -> Check:
    package, installed = _fields(expected, "package", "installed")
    app = {"package": package, "installed": True}
    return Check(path="apps", op="has" if _flag("installed", installed) else "lacks", value=app)


def _app_permission(expected: Any) -> Check:
    package, permission, granted = _fields(expected, "package", "permission", "granted")
    known = {**_PERMISSIONS, **{name: name for name in _PERMISSIONS.values()}}
    if permission not in known:
        raise ValueError(f'unknown permission "{permission}"{did_you_mean(str(permission), known)}')
    return Check(path="apps", op="has", value={"package": package, known[permission]: _flag("granted", granted)})


def _file_exists(expected: Any) -> Check:
    path, exists = _fields(expected, "path", "exists")
    for root in _STORAGE_ROOTS:
        path = str(path).removeprefix(root)
    return Check(path="files", op="has" if _flag("exists", exists) else "lacks", value={"path": path.strip("/")})


def _size_in_answer(expected: Any) -> Check:
    if expected not in (None, True, ""):
        raise ValueError(f"expected_result is not needed: any size with a unit counts; remove {expected!r}")
    return Check(path="answer", op="matches", value=_SIZE)


def _fields(expected: Any, *names: str) -> list[Any]:
    if not isinstance(expected, Mapping) or set(expected) != set(names):
        raise ValueError(f"expected_result must be a mapping of {', '.join(names)}, not {expected!r}")
    return [expected[name] for name in names]


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {value!r}")
    return value


QUERIES: Mapping[str, Builder] = {
    "wifi_enabled": _equals("network.wifi.enabled", bool),
    "bluetooth_enabled": _equals("network.bluetooth.enabled", bool),
    "airplane_mode": _equals("network.airplane_mode", bool),
    "brightness_level": _equals("display.brightness", int),
    "screen_timeout": _equals("display.timeout_ms", int),
    "dark_theme_enabled": _equals("display.dark_theme", bool),
    "auto_rotate_enabled": _equals("display.auto_rotate", bool),
    "dnd_enabled": _equals("sound.dnd", bool),
    "media_volume": _equals("sound.media", int),
    "battery_saver_enabled": _equals("battery.saver", bool),
    "auto_time_enabled": _equals("system.auto_time", bool),
    "system_language": _equals("system.language", str),
    "location_enabled": _equals("location.enabled", bool),
    "developer_options_enabled": _equals("system.developer_options", bool),
    "usb_debugging_enabled": _equals("system.usb_debugging", bool),
    "current_app": _equals("ui.current_app", str),
    "current_activity": _text("ui.current_activity", "contains"),
    "is_home_screen": _equals("ui.is_home_screen", bool),
    "is_recents_screen": _equals("ui.is_recents", bool),
    "notification_count": _notification_count,
    "chrome_cache_cleared": _cache_cleared("chrome"),
    "facebook_cache_cleared": _cache_cleared("facebook"),
    "instagram_cache_cleared": _cache_cleared("instagram"),
    "app_installed": _app_installed,
    "app_permission": _app_permission,
    "file_exists": _file_exists,
    "result_message_contains": _text("answer", "icontains"),
    "finish_message_contains": _text("answer", "icontains"),
    "finish_message_contains_size": _size_in_answer,
}


def resolve(task: Task) -> tuple[Check, ...]:
    """Checks of a task: its own, else what its ``validation_query`` stands for; none if it has neither.

    Raises ValueError for an unknown query or an ``expected_result`` that it does not take.
    """
    if task.checks or task.validation_query is None:
        return task.checks
    if task.validation_query not in QUERIES:
        near = did_you_mean(task.validation_query, QUERIES)
        raise ValueError(f'unknown validation_query "{task.validation_query}"{near}')
    return (QUERIES[task.validation_query](task.expected_result),)
