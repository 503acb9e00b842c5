"""What is on a drawn device: people, notes, mails, files, networks, made of words in place of the usual constants."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from cuarl.sim.phone.generator.draw import Draw
from cuarl.sim.phone.generator.words import Words

Item = dict[str, Any]
T = TypeVar("T")

FOLDERS = ("Download", "Documents", "Pictures")
ENDINGS = ("pdf", "txt", "jpg", "png", "mp3")
PATHS = {
    "contacts": "contacts",
    "notes": "notes",
    "mails": "mails",
    "threads": "messages",
    "files": "files",
    "events": "events",
    "alarms": "clock.alarms",
    "songs": "music.songs",
    "networks": "network.wifi.available",
    "saved": "network.wifi.saved",
    "paired": "network.bluetooth.paired",
    "nearby": "network.bluetooth.available",
    "notifications": "notifications.items",
    "calls": "phone.calls",
}
"""State path of each kind of content."""


class Device:
    """Content of a device, each kind of it drawn when it is first asked for, so that one does not change another."""

    def __init__(self, key: str, words: Words) -> None:
        self._key, self.words = key, words

    def preset(self, *kinds: str) -> dict[str, Any]:
        """The content of some kinds as a task presets it."""
        return {PATHS[kind]: getattr(self, kind) for kind in kinds}

    def _several(self, kind: str, low: int, high: int, make: Callable[[Draw], T], by: Callable[[T], object]) -> list[T]:
        """Items that differ in what ``by`` says of them."""
        draw = Draw(self._key, kind)
        found: dict[object, T] = {}
        count = draw.between(low, high)
        while len(found) < count:
            item = make(draw)
            found.setdefault(by(item), item)
        return list(found.values())

    @cached_property
    def contacts(self) -> list[Item]:
        """People, no two with one name, number or address."""

        def make(draw: Draw) -> Item:
            name = self.words.person(draw)
            email = f"{name.split()[0].lower()}@{draw.choose(('mail', 'post', 'web'))}.test"
            return {"name": name, "phone": number(draw), "email": email, "starred": False}

        return self._several("contacts", 4, 7, make, lambda c: c["name"].split()[0])

    @cached_property
    def notes(self) -> list[Item]:
        """Notes."""

        def make(draw: Draw) -> Item:
            return {"title": self.words.title(draw), "text": self.words.sentence(draw)}

        return self._several("notes", 3, 5, make, lambda n: n["title"])

    @cached_property
    def mails(self) -> list[Item]:
        """Mails that were received and read."""

        def make(draw: Draw) -> Item:
            sender, subject = self.words.person(draw), self.words.title(draw)
            return {"sender": sender, "subject": subject, "text": f"{self.words.sentence(draw)}.", "read": True}

        return self._several("mails", 3, 5, make, lambda m: m["subject"])

    @cached_property
    def threads(self) -> list[Item]:
        """Conversations, some with people of the contacts."""
        people = [contact["name"] for contact in self.contacts]

        def make(draw: Draw) -> Item:
            to = draw.choose(people) if draw.chance(0.7) else self.words.person(draw)
            return {"to": to, "messages": [{"text": self.words.sentence(draw)}]}

        return self._several("threads", 2, 4, make, lambda t: t["to"])

    @cached_property
    def files(self) -> list[Item]:
        """Folders and the files in them."""

        def make(draw: Draw) -> Item:
            name = f"{self.words.noun(draw)}.{draw.choose(ENDINGS)}"
            return {"path": f"{draw.choose(FOLDERS)}/{name}", "size_kb": draw.between(2, 999)}

        files = self._several("files", 4, 7, make, lambda f: f["path"].rpartition("/")[2])
        return [*({"path": folder, "folder": True} for folder in FOLDERS), *files]

    @cached_property
    def events(self) -> list[Item]:
        """Calendar entries on different days."""

        def make(draw: Draw) -> Item:
            title, place = self.words.title(draw), self.words.title(draw)
            return {"title": title, "day": draw.between(1, 30), "minutes": 30 * draw.between(14, 42), "place": place}

        found = self._several("events", 3, 4, make, lambda e: e["day"])
        return list({event["title"]: event for event in found}.values())

    @cached_property
    def alarms(self) -> list[Item]:
        """Alarms at different times."""

        def make(draw: Draw) -> Item:
            label = self.words.noun(draw).capitalize()
            return {"minutes": 5 * draw.between(48, 275), "enabled": draw.chance(0.5), "label": label}

        return self._several("alarms", 2, 4, make, lambda a: a["minutes"])

    @cached_property
    def songs(self) -> list[Item]:
        """Songs."""

        def make(draw: Draw) -> Item:
            return {"title": self.words.title(draw), "artist": self.words.person(draw)}

        return self._several("songs", 4, 6, make, lambda s: s["title"])

    @cached_property
    def networks(self) -> list[str]:
        """Wi-Fi networks in range."""

        def make(draw: Draw) -> str:
            word = draw.choose((self.words.noun(draw), self.words.made_up(draw))).capitalize()
            return word if draw.chance(0.4) else f"{word} {draw.choose(('Net', 'Home', 'Guest', '5G', '24'))}"

        return self._several("networks", 4, 5, make, str)

    @cached_property
    def saved(self) -> list[str]:
        """Wi-Fi networks that are known: two of those in range, the first of which is joined."""
        return self.networks[:2]

    @cached_property
    def paired(self) -> list[str]:
        """Bluetooth devices that are paired."""
        return self._several("paired", 2, 3, self._gadget, str)

    @cached_property
    def nearby(self) -> list[str]:
        """Bluetooth devices that could be paired."""
        return [name for name in self._several("nearby", 2, 3, self._gadget, str) if name not in self.paired]

    def _gadget(self, draw: Draw) -> str:
        what = draw.choose(("Speaker", "Earbuds", "Watch", "Keyboard", "Car", "Headset"))
        return f"{self.words.noun(draw).capitalize()} {what}"

    @cached_property
    def notifications(self) -> list[Item]:
        """Notifications."""
        apps = ("mail", "notes", "clock", "store", "messages")

        def make(draw: Draw) -> Item:
            return {"app": draw.choose(apps), "title": self.words.title(draw), "text": self.words.sentence(draw)}

        return self._several("notifications", 2, 3, make, lambda n: n["title"])

    @cached_property
    def calls(self) -> list[Item]:
        """The call log: numbers of strangers."""

        def make(draw: Draw) -> Item:
            return {"number": number(draw), "direction": draw.choose(("in", "out", "missed"))}

        return self._several("calls", 2, 4, make, lambda c: c["number"])


def number(draw: Draw) -> str:
    """A phone number."""
    return f"555-{draw.between(1000, 9999)}"
