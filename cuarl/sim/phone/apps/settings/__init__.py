"""The Settings app: a dozen categories with pages of switches, choices and sliders."""

from __future__ import annotations

from cuarl.sim.kit import widgets as w
from cuarl.sim.phone.apps.settings import apps, device, display, network, personal, sound, system
from cuarl.sim.phone.registry import AppModule, Context, Screen
from cuarl.sim.phone.rows import link, text_field

APP = AppModule("settings", home="settings/main")

CATEGORIES: tuple[tuple[str, str, str, str], ...] = (
    ("Network & internet", "network", "wifi", "Wi-Fi, mobile, hotspot"),
    ("Connected devices", "devices", "devices", "Bluetooth, NFC, casting"),
    ("Apps", "apps", "apps", "Installed apps"),
    ("Notifications", "notifications", "bell", "History, bubbles"),
    ("Battery", "battery", "battery", "Saver, percentage"),
    ("Storage", "storage", "storage", "Space used"),
    ("Sound & vibration", "sound", "volume", "Volume, ringtone"),
    ("Display", "display", "brightness", "Theme, font, timeout"),
    ("Wallpaper & style", "style", "palette", "Colours, pictures"),
    ("Accessibility", "accessibility", "accessibility", "Captions, magnifier"),
    ("Security", "security", "lock", "Screen lock"),
    ("Privacy", "privacy", "eye", "Permissions"),
    ("Location", "location", "location", "Scanning, history"),
    ("System", "system", "system", "Language, time, updates"),
    ("About phone", "about", "info", "Name, build number"),
)
"""Title, page, icon, optional subtitle."""


@APP.page("main")
def main(ctx: Context) -> Screen:
    """The list of categories."""
    query = str(ctx.form("settings.query"))
    rows = [
        link(ctx, title, f"settings/{page}", hint, icon)
        for title, page, icon, hint in ctx.shuffled(CATEGORIES)
        if query.lower() in title.lower()
    ]
    field = text_field(ctx, "Search settings", "ui.form.settings.query", search=True)
    return Screen("Settings", (field, w.Space(4), *rows))


for _part in (network, display, sound, device, personal, apps, system):
    for _name, _builder in _part.PAGES.items():
        APP.page(_name)(_builder)
    APP.actions.update(getattr(_part, "ACTIONS", {}))
