"""What apps keep: small frozen records that make up the leaves of the device state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class App:
    """An application. ``key`` is its short name in paths: ``apps.chrome.installed``."""

    key: str
    name: str
    """As drawn under its icon."""
    package: str
    installed: bool = True
    system: bool = False
    """System apps can't be uninstalled."""
    icon: bool = True
    """Whether the launcher shows it."""
    running: bool = False
    notifications: bool = True
    storage_mb: int = 60
    """Size of the app itself, megabytes."""
    cache_kb: int = 2048
    data_kb: int = 4096
    camera: bool = False
    microphone: bool = False
    location: bool = False
    contacts: bool = False
    background_data: bool = True


@dataclass(frozen=True, slots=True)
class Notification:
    """One line of the notification shade."""

    app: str
    """Key of the app that posted it."""
    title: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the launcher."""

    name: str
    apps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HomePage:
    """One page of the launcher."""

    apps: tuple[str, ...] = ()
    """App keys in reading order."""
    folders: tuple[Folder, ...] = ()


@dataclass(frozen=True, slots=True)
class Contact:
    """A person in the address book."""

    name: str
    phone: str = ""
    email: str = ""
    starred: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One text message."""

    text: str
    mine: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation with one person or number."""

    to: str
    messages: tuple[Message, ...] = ()
    draft: str = ""
    unread: bool = False
    pinned: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A note."""

    title: str
    text: str = ""
    pinned: bool = False
    archived: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder by its path below the storage root: ``Download/logo.svg``."""

    path: str
    folder: bool = False
    size_kb: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """A calendar entry. ``day`` is the day of the shown month, ``minutes`` counts from midnight."""

    title: str
    day: int
    minutes: int = 540
    place: str = ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm; ``minutes`` counts from midnight."""

    minutes: int
    enabled: bool = True
    label: str = ""
    vibrate: bool = True


@dataclass(frozen=True, slots=True)
class Timer:
    """The countdown: seconds set, and whether it runs."""

    seconds: int = 0
    running: bool = False


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """The stopwatch."""

    seconds: int = 0
    running: bool = False
    laps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Photo:
    """A picture; ``subject`` says what is drawn."""

    name: str
    subject: str = "hills"
    kind: Literal["photo", "screenshot", "download"] = "photo"
    favourite: bool = False
    album: str = "Camera"


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the call log."""

    number: str
    direction: Literal["in", "out", "missed"] = "in"


@dataclass(frozen=True, slots=True)
class Mail:
    """One e-mail."""

    sender: str
    subject: str
    text: str = ""
    read: bool = False
    starred: bool = False
    archived: bool = False
    to: str = ""
    """Whom it was sent to from here; empty for what was received."""
    draft: bool = False
    """Written here but not sent yet."""


@dataclass(frozen=True, slots=True)
class Song:
    """One track of the music player."""

    title: str
    artist: str
    liked: bool = False
