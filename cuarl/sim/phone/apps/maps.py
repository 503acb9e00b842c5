"""Maps: places of one invented town, how far they are, saved places.

The way to a place is an estimate, not guidance.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.canvas import Canvas
from cuarl.sim.kit.effects import Append, Open, Put, Remove
from cuarl.sim.kit.paint import PAINTERS
from cuarl.sim.phone import forms
from cuarl.sim.phone.apps.phone import call
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import choice, link, switch, text_field, value_row

APP = AppModule("maps", home="maps/main")

QUERY, KIND = "ui.form.maps.query", "ui.form.maps.kind"
TRAVEL = "ui.form.maps.travel"


@dataclass(frozen=True, slots=True)
class Place:
    """A place; ``x`` and ``y`` are percent of the map's width and height, from the top left."""

    kind: str
    x: int
    y: int
    address: str
    phone: str = ""


PLACES: dict[str, Place] = {
    "Blue Cup": Place("Coffee", 44, 40, "Main Street 12", "555-0201"),
    "Corner Bakery": Place("Coffee", 60, 62, "Mill Road 3", "555-0202"),
    "Green Bowl": Place("Food", 38, 66, "Park Lane 8", "555-0203"),
    "Pasta House": Place("Food", 70, 34, "Main Street 40", "555-0204"),
    "City Park": Place("Park", 20, 30, "Park Lane 1"),
    "Rose Garden": Place("Park", 84, 74, "East Road 9"),
    "Central Station": Place("Train", 52, 18, "Station Square 1", "555-0207"),
    "Old Harbour": Place("Sight", 12, 82, "Quay 5"),
    "Art Museum": Place("Sight", 76, 14, "Hill Street 2", "555-0209"),
}
KINDS = ("Food", "Coffee", "Park", "Sight")
HERE = (50, 52)
KM = 0.06
"""Kilometres per percent of the map."""
SPEEDS = {"Drive": 24, "Walk": 5, "Bus": 15, "Cycle": 14}
"""Kilometres an hour, all stops included."""


def distance_km(place: Place) -> float:
    """Kilometres along the streets, which run east and south."""
    return KM * (abs(place.x - HERE[0]) + abs(place.y - HERE[1]))


def distance_text(ctx: Context, place: Place) -> str:
    """A distance in the chosen unit."""
    km = distance_km(place)
    return f"{km * 0.6214:.1f} mi" if ctx.state.maps.miles else f"{km:.1f} km"


def located(ctx: Context) -> bool:
    """Whether the app knows where the device is."""
    return ctx.state.location.enabled and bool(ctx.get("apps.maps.location"))


# --- the map -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan(w.Picture):
    """The map of the town with pins."""

    pins: tuple[tuple[int, int], ...] = ()
    here: bool = False
    traffic: bool = False


def paint_plan(c: Canvas, plan: Plan) -> None:
    """Draw the map: land, river, park, streets, the busy street, pins."""
    p, dark = c.style.palette, c.style.dark
    land, street, water, green, busy = (
        ((38, 42, 48), (84, 88, 96), (34, 58, 84), (36, 64, 48), (190, 110, 60))
        if dark
        else ((238, 236, 228), (255, 255, 255), (164, 206, 232), (190, 222, 178), (240, 160, 90))
    )
    width, height = c.width, c.height
    c.rect(0, 0, width, height, land)
    c.rounded(width * 0.06, height * 0.12, width * 0.26, height * 0.36, 6, green)
    c.rounded(width * 0.78, height * 0.64, width * 0.16, height * 0.22, 6, green)
    c.rect(0, height * 0.86, width, height * 0.14, water)
    for share in (0.18, 0.42, 0.66):
        c.rect(0, height * share - 1.5, width, 3, street)
    for share in (0.36, 0.56, 0.74):
        c.rect(width * share - 1.5, 0, 3, height * 0.86, street)
    if plan.traffic:
        c.rect(width * 0.36, height * 0.42 - 1.2, width * 0.38, 2.4, busy)
    for x, y in plan.pins:
        c.icon("location", width * x / 100, height * y / 100 - 6, 14, (210, 50, 44))
    if plan.here:
        c.circle(width * HERE[0] / 100, height * HERE[1] / 100, 5, (255, 255, 255))
        c.circle(width * HERE[0] / 100, height * HERE[1] / 100, 3.6, p.accent)


PAINTERS[Plan] = paint_plan


def _plan(ctx: Context, names: list[str], height: float) -> w.HBox:
    pins = tuple((PLACES[name].x, PLACES[name].y) for name in names)
    plan = Plan("Map", height=height, pins=pins, here=located(ctx), traffic=ctx.state.maps.traffic)
    return w.HBox((plan,), pad=0)


# --- pages ---------------------------------------------------------------------------------------------------------


@APP.page("main")
def main(ctx: Context) -> Screen:
    """The map with what was found on it."""
    query, kind = str(ctx.get(QUERY)).strip().lower(), str(ctx.get(KIND))
    found = [n for n, p in PLACES.items() if query in f"{n} {p.kind} {p.address}".lower() and kind in ("", p.kind)]
    found.sort(key=lambda name: distance_km(PLACES[name]) if located(ctx) else 0)
    chips = tuple(w.Chip(k, Put(KIND, "" if k == kind else k), selected=k == kind) for k in KINDS)
    rows = tuple(_row(ctx, name) for name in found)
    actions = (
        w.IconButton("Saved places", Open("maps/saved"), icon="bookmark"),
        w.IconButton("Map settings", Open("maps/settings"), icon="gear"),
    )
    return Screen(
        "Maps",
        (_plan(ctx, found, 104), *_no_location(ctx), *(rows or forms.empty("No such place"))),
        actions,
        top=(text_field(ctx, "Search places", QUERY, search=True), w.HBox(chips, height=26, pad=6)),
    )


def _row(ctx: Context, name: str) -> w.Row:
    place = PLACES[name]
    far = distance_text(ctx, place) if located(ctx) else ""
    icon = "bookmark" if name in ctx.state.maps.saved else "location"
    return w.Row(name, Open(f"maps/place:{name}"), subtitle=place.kind, icon=icon, value=far)


def _no_location(ctx: Context) -> tuple[w.Widget, ...]:
    if located(ctx):
        return ()
    page = "settings/app_permissions:maps" if ctx.state.location.enabled else "settings/location"
    return (w.Card("Location is off", Open(page), text="Tap to change it", icon="location"),)


@APP.page("saved")
def saved(ctx: Context) -> Screen:
    """Saved places."""
    rows = tuple(_row(ctx, name) for name in ctx.state.maps.saved if name in PLACES)
    return Screen("Saved places", rows or forms.empty("No saved places"))


@APP.page("place")
def place(ctx: Context) -> Screen:
    """One place."""
    name, found = ctx.arg, PLACES.get(ctx.arg)
    if found is None:
        return Screen("Place", forms.empty("There is no such place."))
    kept = name in ctx.state.maps.saved
    save = w.IconButton(
        "Remove from saved" if kept else "Save place",
        Remove("maps.saved", name) if kept else Append("maps.saved", name),
        icon="bookmark",
        active=kept,
    )
    buttons = (
        w.Button("Directions", Open(f"maps/route:{name}"), look="filled", icon="send"),
        w.Button("Call", call(ctx.state, found.phone), icon="phone", enabled=bool(found.phone)),
    )
    body = (
        _plan(ctx, [name], 110),
        w.Space(4),
        w.HBox(buttons, pad=10),
        value_row("Kind", found.kind, icon="info"),
        value_row("Address", found.address, icon="location"),
        value_row("Distance", distance_text(ctx, found) if located(ctx) else "Unknown", icon="map"),
    )
    return Screen(name, body, (save,))


@APP.page("route")
def route(ctx: Context) -> Screen:
    """How far it is and how long it takes; nobody is guided."""
    found = PLACES.get(ctx.arg)
    if found is None:
        return Screen("Directions", forms.empty("There is no such place."))
    travel = str(ctx.get(TRAVEL)) or "Drive"
    tabs = tuple(w.Tab(mode, Put(TRAVEL, mode), selected=mode == travel) for mode in SPEEDS)
    head: tuple[w.Widget, ...] = (w.HBox(tabs, height=30),)
    if not located(ctx):
        return Screen("Directions", _no_location(ctx), top=head)
    minutes = max(1, round(distance_km(found) / SPEEDS[travel] * 60))
    body = (
        _plan(ctx, [ctx.arg], 110),
        w.Display(f"{minutes} min", 22, height=34),
        w.Paragraph(f"{distance_text(ctx, found)} to {ctx.arg}", 12, muted=False, align="centre"),
        w.Paragraph("An estimate. This map does not guide you.", align="centre"),
        link(ctx, "Route options", "maps/settings", "Tolls, units", "gear"),
    )
    return Screen("Directions", body, top=head)


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Map settings."""
    rows = (
        choice(ctx, "Distances", "maps.miles", {False: "Kilometres", True: "Miles"}),
        switch(ctx, "Avoid tolls", "maps.avoid_tolls"),
        switch(ctx, "Show traffic", "maps.traffic", "Busy streets in orange"),
        switch(ctx, "Notifications", "apps.maps.notifications"),
        link(ctx, "Permissions", "settings/app_permissions:maps", "Location"),
    )
    return Screen("Map settings", ctx.shuffled(rows))
