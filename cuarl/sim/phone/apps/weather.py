"""The weather: now, the next days, other cities. The forecasts are invented and never change."""

from __future__ import annotations

from dataclasses import dataclass

from cuarl.sim.kit import widgets as w
from cuarl.sim.kit.effects import Open, Put
from cuarl.sim.phone import forms
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import choice, link, switch, text_field

APP = AppModule("weather", home="weather/today")

QUERY = "ui.form.weather.query"
DAYS = ("Friday", "Saturday", "Sunday", "Monday", "Tuesday")
ICONS = {"Sunny": "brightness", "Partly cloudy": "sun", "Cloudy": "cloud", "Rain": "rain", "Snow": "snow"}


@dataclass(frozen=True, slots=True)
class Forecast:
    """Now and the next days; temperatures in degrees Celsius, wind in km/h, humidity in percent."""

    now: int
    sky: str
    wind: int
    humidity: int
    days: tuple[tuple[int, int, str], ...]
    """Highest and lowest temperature and sky of each of the next days."""
    alert: str = ""


FORECASTS: dict[str, Forecast] = {
    "Berlin": Forecast(18, "Rain", 14, 81,
        ((19, 11, "Rain"), (21, 12, "Cloudy"), (24, 13, "Sunny"), (25, 15, "Sunny"), (22, 14, "Partly cloudy")),
        "Heavy rain tonight"),
    "Cairo": Forecast(34, "Sunny", 11, 22,
        ((35, 22, "Sunny"), (36, 23, "Sunny"), (35, 22, "Sunny"), (33, 21, "Sunny"), (34, 22, "Sunny")), "Great heat"),
    "Lima": Forecast(19, "Cloudy", 9, 84,
        ((20, 16, "Cloudy"), (20, 16, "Cloudy"), (21, 16, "Partly cloudy"), (20, 15, "Cloudy"), (20, 16, "Cloudy"))),
    "London": Forecast(15, "Cloudy", 20, 74,
        ((16, 10, "Rain"), (17, 10, "Partly cloudy"), (18, 11, "Cloudy"), (18, 12, "Rain"), (17, 11, "Rain"))),
    "Nairobi": Forecast(22, "Partly cloudy", 12, 58,
        ((23, 13, "Partly cloudy"), (24, 13, "Sunny"), (23, 14, "Rain"), (22, 13, "Cloudy"), (23, 13, "Sunny"))),
    "New York": Forecast(26, "Partly cloudy", 16, 62,
        ((28, 20, "Sunny"), (29, 21, "Sunny"), (25, 19, "Rain"), (24, 18, "Cloudy"), (27, 19, "Sunny"))),
    "Oslo": Forecast(12, "Rain", 18, 77,
        ((13, 7, "Rain"), (15, 8, "Cloudy"), (17, 9, "Sunny"), (18, 10, "Sunny"), (16, 9, "Partly cloudy"))),
    "Sydney": Forecast(16, "Sunny", 15, 55,
        ((17, 9, "Sunny"), (18, 9, "Sunny"), (16, 10, "Rain"), (15, 9, "Rain"), (17, 8, "Sunny"))),
    "Tokyo": Forecast(24, "Sunny", 10, 66,
        ((25, 19, "Cloudy"), (23, 18, "Rain"), (22, 18, "Rain"), (26, 19, "Sunny"), (27, 20, "Sunny"))),
    "Tromso": Forecast(1, "Snow", 24, 88,
        ((2, -3, "Snow"), (3, -2, "Cloudy"), (5, -1, "Partly cloudy"), (6, 0, "Sunny"), (4, -1, "Rain")), "Icy roads"),
}  # fmt: skip


def degrees(ctx: Context, celsius: int) -> str:
    """A temperature in the chosen unit."""
    return f"{round(celsius * 9 / 5 + 32)} F" if ctx.state.weather.fahrenheit else f"{celsius} C"


@APP.page("today")
def today(ctx: Context) -> Screen:
    """Now and the next days in the chosen city."""
    weather = ctx.state.weather
    actions = (
        w.IconButton("Choose city", forms.start("weather/cities", {"weather.query": ""}), icon="search"),
        w.IconButton("Weather settings", Open("weather/settings"), icon="gear"),
    )
    now = FORECASTS.get(weather.city)
    if now is None:
        return Screen(weather.city, forms.empty("No forecast for this city"), actions)
    alert = (w.Card(now.alert, Open("weather/alert"), text="Tap to read more", icon="bell"),)
    rows = tuple(
        w.Row(day, subtitle=sky, icon=ICONS[sky], value=f"{degrees(ctx, high)} / {degrees(ctx, low)}")
        for day, (high, low, sky) in zip(DAYS, now.days, strict=True)
    )
    body = (
        w.Display(degrees(ctx, now.now), 38, height=54),
        w.Paragraph(now.sky, 13, muted=False, align="centre"),
        w.Paragraph(f"Wind {now.wind} km/h, humidity {now.humidity}%", align="centre"),
        *(alert if now.alert and weather.alerts else ()),
        w.Header("Next days"),
        *rows,
    )
    return Screen(weather.city, body, actions)


@APP.page("alert")
def alert(ctx: Context) -> Screen:
    """What an alert means."""
    now = FORECASTS.get(ctx.state.weather.city)
    if now is None or not now.alert:
        return Screen("Alert", forms.empty("There is no alert."))
    text = f"The weather service warns the people of {ctx.state.weather.city}. Stay indoors if you can."
    return Screen("Alert", (w.Space(4), w.Paragraph(now.alert, 16, muted=False), w.Paragraph(text, 12)))


@APP.page("cities")
def cities(ctx: Context) -> Screen:
    """Cities to choose from."""
    query = str(ctx.get(QUERY)).strip().lower()
    rows = tuple(
        w.Row(
            city,
            forms.finish(Put("weather.city", city)),
            subtitle=f"{degrees(ctx, now.now)}, {now.sky.lower()}",
            icon=ICONS[now.sky],
            trailing="radio",
            checked=city == ctx.state.weather.city,
        )
        for city, now in FORECASTS.items()
        if query in city.lower()
    )
    field = text_field(ctx, "Search cities", QUERY, search=True)
    return Screen("Choose city", rows or forms.empty("No such city"), top=(field,))


@APP.page("settings")
def settings(ctx: Context) -> Screen:
    """Weather settings."""
    rows = (
        choice(ctx, "Units", "weather.fahrenheit", {False: "Celsius", True: "Fahrenheit"}),
        switch(ctx, "Weather alerts", "weather.alerts", "Warn of bad weather"),
        switch(ctx, "Notifications", "apps.weather.notifications"),
        switch(ctx, "Background refresh", "apps.weather.background_data"),
        link(ctx, "Permissions", "settings/app_permissions:weather", "Location"),
    )
    return Screen("Weather settings", ctx.shuffled(rows))
