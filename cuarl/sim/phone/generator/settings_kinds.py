"""Kinds of goals about settings: switches, choices, levels, what is set, names, whole pages, apps, networks."""

from __future__ import annotations

from typing import Any

from cuarl.sim.phone.apps.settings.apps import size_text
from cuarl.sim.phone.generator.catalogue import DEVELOPER, Setting
from cuarl.sim.phone.generator.part import OPEN_APP, Part, Scope, answer, equals, kind
from cuarl.tasks.task import Check

STATES = {True: "on", False: "off"}
OF_APPS = 1 / 3
MOST_OF_A_PAGE = 5
"""Switches on a page that is asked about as a whole, at most."""


def place_of(scope: Scope, one: Setting) -> str:
    """Where a setting is found, for where its label alone does not say it."""
    names = scope.catalogue.apps
    if one.about:
        return f"of {names.get(one.about, 'GBox Keyboard')}"
    return f"on the {one.title} page" if one.app == "settings" else f"in {names.get(one.app, 'GBox Keyboard')}"


def words_of(scope: Scope, one: Setting) -> dict[str, str]:
    """A setting's label, with its place where that is needed and now and then where it is not."""
    named = one.common or bool(one.about) or scope.draw.chance(0.3)
    return {"label": f"{one.label} {place_of(scope, one)}" if named else one.label}


def start_of(one: Setting, value: Any) -> dict[str, Any]:
    """What a setting starts with, and what its page needs to be there."""
    return {**({DEVELOPER: True} if one.page == "settings/developer" else {}), one.path: value}


def _pick(scope: Scope, *kinds: str) -> Setting | None:
    """A setting; those that each app has for itself are many, and drawn in a third of the cases only."""
    of_apps = scope.draw.chance(OF_APPS)
    found = [one for one in scope.settings if one.kind in kinds and (not one.about or of_apps)]
    return scope.draw.choose(found) if found else None


@kind("setting.switch", "", "settings", weight=9)
def switch(scope: Scope) -> Part | None:
    """Turn one switch."""
    one = _pick(scope, "switch")
    return switched(scope, one, scope.draw.chance(0.5)) if one else None


def switched(scope: Scope, one: Setting, on: bool) -> Part:
    """The part that turns a switch on or off."""
    return Part(
        one.path,
        {**words_of(scope, one), "state": STATES[on], "enable": "enable" if on else "disable"},
        (equals(one.path, on),),
        OPEN_APP + one.steps,
        (one.path, *((DEVELOPER,) if one.page == "settings/developer" else ())),
        start_of(one, not on),
        app=one.app,
    )


@kind("setting.choice", "", "settings", weight=2)
def choice(scope: Scope) -> Part | None:
    """Choose one of several values."""
    one = _pick(scope, "choice")
    if one is None:
        return None
    (_, start), (text, value) = scope.draw.some(one.options, 2)
    words = {**words_of(scope, one), "value": text}
    return Part(
        f"{one.path}={text}",
        words,
        (equals(one.path, value),),
        OPEN_APP + one.steps,
        (one.path,),
        start_of(one, start),
        app=one.app,
    )


@kind("setting.level", "", "settings", weight=1.5)
def level(scope: Scope) -> Part | None:
    """Slide to about a share of the whole."""
    one = _pick(scope, "level")
    if one is None:
        return None
    percent = 10 * scope.draw.between(1, 9)
    start = 10 if percent > 50 else 90
    span = one.high - one.low
    low, high = (one.low + round(span * (percent + d) / 100) for d in (-6, 6))
    words = {**words_of(scope, one), "percent": f"{percent}%"}
    return Part(
        f"{one.path}={percent}",
        words,
        (Check(path=one.path, op="between", value=[low, high]),),
        OPEN_APP + one.steps + 1,
        (one.path, "display.auto_brightness"),
        start_of(one, one.low + round(span * start / 100)),
        app=one.app,
    )


@kind("setting.lookup", "", "settings", last=True, weight=2)
def looked_up(scope: Scope) -> Part | None:
    """Say what is chosen."""
    one = _pick(scope, "choice")
    if one is None:
        return None
    text, value = scope.draw.choose(one.options)
    return Part(
        f"{one.path}?{text}",
        words_of(scope, one),
        (answer(text),),
        OPEN_APP + one.steps,
        (one.path,),
        start_of(one, value),
        plan=({"open": one.page}, {"answer": text}),
        app=one.app,
    )


@kind("setting.ask", "", "settings", last=True, weight=2)
def asked(scope: Scope) -> Part | None:
    """Say whether a switch is on."""
    one = _pick(scope, "switch")
    if one is None:
        return None
    on = scope.draw.chance(0.5)
    told = "yes" if on else "no"
    return Part(
        one.path,
        words_of(scope, one),
        (answer(told),),
        OPEN_APP + one.steps,
        (one.path,),
        start_of(one, on),
        plan=({"open": one.page}, {"answer": told}),
        app=one.app,
    )


@kind("setting.all_but", "", "settings", weight=1.5)
def all_but(scope: Scope) -> Part | None:
    """Turn all switches of a page, with or without one that stays."""
    pages: dict[str, list[Setting]] = {}
    for one in scope.settings:
        if not one.about:
            pages.setdefault(one.page, []).append(one)
    whole = [found for found in pages.values() if _is_whole(scope, found)]
    if not whole:
        return None
    found, on = scope.draw.choose(whole), scope.draw.chance(0.5)
    spared = scope.draw.choose(found)
    turned = [one for one in found if one is not spared]
    preset: dict[str, Any] = {}
    for one in found:
        preset |= start_of(one, not on)
    name = (
        f"{found[0].title} page" if found[0].app == "settings" else f"{found[0].title} page {place_of(scope, found[0])}"
    )
    words = {"page": name, "state": STATES[on], "label": spared.label}
    return Part(
        f"{found[0].page}-{spared.path}",
        words,
        tuple(equals(one.path, on) for one in turned),
        OPEN_APP + found[0].steps + len(turned),
        tuple(one.path for one in found),
        preset,
        app=found[0].app,
    )


def _is_whole(scope: Scope, found: list[Setting]) -> bool:
    """Whether all settings of a page are switches that may be asked about, three to five."""
    everything = [one for one in scope.catalogue.settings if one.page == found[0].page]
    switches = all(one.kind == "switch" for one in everything)
    return switches and 3 <= len(everything) <= MOST_OF_A_PAGE and len(found) == len(everything)


NAMES = {
    "system.device_name": ("phone", "settings/about", "Device name", "OK", ""),
    "network.hotspot_name": ("hotspot", "settings/hotspot", "Hotspot name", "Save", ""),
    "network.bluetooth.name": ("phone for Bluetooth", "settings/bluetooth", "Device name", "Rename", ""),
}


@kind("setting.rename", "settings", "input")
def rename(scope: Scope) -> Part | None:
    """Give the phone or its hotspot another name."""
    path = scope.chosen(tuple(NAMES))
    if path is None:
        return None
    what, page, row, button, _ = NAMES[path]
    old, new = "Phone", scope.device.words.title(scope.draw)
    plan = ({"open": page}, {"tap": row}, {"type": new, "into": "Name"}, {"tap": button})
    return Part(path, {"what": what, "name": new}, (equals(path, new),), 13, (path,), {path: old}, plan=plan)


# --- apps ----------------------------------------------------------------------------------------------------------


def _some_app(scope: Scope) -> str:
    return scope.draw.choose([key for key in scope.apps if key in scope.catalogue.removable])


@kind("app.uninstall", "settings", "system", weight=0.5)
def uninstall(scope: Scope) -> Part | None:
    """Uninstall an app."""
    key = _some_app(scope)
    lacks = Check(path="apps", op="lacks", value={"package": scope.catalogue.packages[key], "installed": True})
    return Part(key, {"app": scope.catalogue.apps[key]}, (lacks,), 8, (f"apps.{key}", "launcher"))


@kind("app.clear_cache", "settings", "system", weight=0.7)
def clear_cache(scope: Scope) -> Part | None:
    """Empty an app's cache."""
    key, path = _some_app(scope), "cache_kb"
    return _cleared(scope, key, f"apps.{key}.{path}")


@kind("app.clear_data", "settings", "system", weight=0.7)
def clear_data(scope: Scope) -> Part | None:
    """Delete an app's data."""
    key, path = _some_app(scope), "data_kb"
    return _cleared(scope, key, f"apps.{key}.{path}")


def _cleared(scope: Scope, key: str, path: str) -> Part:
    start = {path: scope.draw.between(100, 90000)}
    return Part(path, {"app": scope.catalogue.apps[key]}, (equals(path, 0),), 8, (f"apps.{key}",), start)


@kind("app.lookup", "settings", "system", last=True)
def app_size(scope: Scope) -> Part | None:
    """Say how large an app's cache or data is."""
    key, (what, field) = _some_app(scope), scope.draw.choose((("cache", "cache_kb"), ("user data", "data_kb")))
    size = scope.draw.between(40, 90000)
    told = size_text(size)
    plan = ({"open": f"settings/app_storage:{key}"}, {"answer": told})
    words = {"app": scope.catalogue.apps[key], "what": what}
    return Part(f"{key} {what}", words, (answer(told),), 8, (f"apps.{key}",), {f"apps.{key}.{field}": size}, plan=plan)


# --- networks and devices ------------------------------------------------------------------------------------------

WIFI = ("network.wifi",)


def _networks(scope: Scope) -> dict[str, Any]:
    return {"network.wifi.enabled": True, "network.wifi.connected": scope.device.saved[0]}


@kind("wifi.join", "settings", "system")
def join(scope: Scope) -> Part | None:
    """Connect to a network that is not known yet."""
    name = scope.draw.choose(scope.device.networks[2:])
    checks = (
        equals("network.wifi.connected", name),
        Check(path="network.wifi.saved", op="contains", value=name),
    )
    return Part(name, {"name": name}, checks, 7, WIFI, _networks(scope), ("networks", "saved"))


@kind("wifi.forget", "settings", "system")
def forget(scope: Scope) -> Part | None:
    """Forget a saved network."""
    name = scope.device.saved[1]
    check = Check(path="network.wifi.saved", op="not_contains", value=name)
    return Part(name, {"name": name}, (check,), 8, WIFI, _networks(scope), ("networks", "saved"))


@kind("wifi.lookup", "settings", "system", last=True)
def connected(scope: Scope) -> Part | None:
    """Say which network is joined."""
    name = scope.device.saved[0]
    plan = ({"open": "settings/wifi"}, {"answer": name})
    return Part(name, {}, (answer(name),), 6, WIFI, _networks(scope), ("networks", "saved"), plan)


BLUETOOTH = ("network.bluetooth",)
RADIO = {"network.bluetooth.enabled": True}


@kind("bluetooth.forget", "settings", "system")
def unpair(scope: Scope) -> Part | None:
    """Forget a paired device."""
    name = scope.draw.choose(scope.device.paired)
    check = Check(path="network.bluetooth.paired", op="not_contains", value=name)
    return Part(name, {"name": name}, (check,), 9, BLUETOOTH, RADIO, ("paired", "nearby"))


@kind("bluetooth.pair", "settings", "system")
def pair(scope: Scope) -> Part | None:
    """Pair a device."""
    name = scope.draw.choose(scope.device.nearby)
    check = Check(path="network.bluetooth.paired", op="contains", value=name)
    return Part(name, {"name": name}, (check,), 8, BLUETOOTH, RADIO, ("paired", "nearby"))
