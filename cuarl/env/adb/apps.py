"""Apps by the names that people see: a device's shell knows only packages."""

from __future__ import annotations

from collections.abc import Collection, Mapping

KNOWN: Mapping[str, tuple[str, ...]] = {
    "browser": ("com.android.browser", "com.android.chrome"),
    "calculator": ("com.google.android.calculator", "com.android.calculator2"),
    "calendar": ("com.google.android.calendar", "com.android.calendar"),
    "camera": ("com.google.android.GoogleCamera", "com.android.camera2", "com.android.camera"),
    "chrome": ("com.android.chrome",),
    "clock": ("com.google.android.deskclock", "com.android.deskclock"),
    "contacts": ("com.google.android.contacts", "com.android.contacts"),
    "facebook": ("com.facebook.katana",),
    "files": ("com.google.android.documentsui", "com.android.documentsui", "com.google.android.apps.nbu.files"),
    "gallery": ("com.google.android.apps.photos", "com.android.gallery3d"),
    "gmail": ("com.google.android.gm",),
    "instagram": ("com.instagram.android",),
    "mail": ("com.android.email", "com.google.android.gm"),
    "maps": ("com.google.android.apps.maps",),
    "messages": ("com.google.android.apps.messaging", "com.android.messaging", "com.android.mms"),
    "phone": ("com.google.android.dialer", "com.android.dialer"),
    "photos": ("com.google.android.apps.photos",),
    "play store": ("com.android.vending",),
    "settings": ("com.android.settings",),
    "youtube": ("com.google.android.youtube",),
}
"""Packages of common apps by their name in lower case, the more usual first."""


def package_of(name: str, installed: Collection[str], named: Mapping[str, str]) -> str | None:
    """The installed package that ``name`` means; None if there is none, or if it is not clear which.

    ``named`` is what a task or the device itself says, and is believed first; then a package's own name, the apps that
    are known, and a package that ends in the name.
    """
    wanted = name.strip().lower()
    told = {title.lower(): package for title, package in named.items()}
    if wanted in told:
        return told[wanted] if told[wanted] in installed else None
    if wanted in installed:
        return wanted
    known = next((package for package in KNOWN.get(wanted, ()) if package in installed), None)
    if known is not None:
        return known
    ending = [package for package in installed if package.rpartition(".")[2].lower() == wanted.replace(" ", "")]
    return ending[0] if len(ending) == 1 else None
