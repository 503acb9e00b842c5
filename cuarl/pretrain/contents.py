"""What people keep on their devices, drawn at random: contacts, messages, notes, mails, files, networks, songs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

from cuarl.pretrain import words as t
from cuarl.sim.desktop.records import File as DesktopFile
from cuarl.sim.desktop.records import User
from cuarl.sim.desktop.state import DesktopState
from cuarl.sim.phone.records import (
    Alarm,
    Call,
    Contact,
    Event,
    File,
    Mail,
    Message,
    Note,
    Notification,
    Photo,
    Song,
    Thread,
)
from cuarl.sim.phone.state import DeviceState

T = TypeVar("T")
SUBJECTS = ("hills", "sunset", "city", "flower", "abstract")
APPS_THAT_POST = ("messages", "mail", "calendar", "store", "weather", "clock", "music", "notes", "photos")


def several(rng: random.Random, low: int, high: int, make: Callable[[], T]) -> tuple[T, ...]:
    """Some of what ``make`` makes."""
    return tuple(make() for _ in range(rng.randint(low, high)))


def on_phone(rng: random.Random, state: DeviceState, *, unseen: bool = False) -> DeviceState:
    """A phone with other data; settings stay. ``unseen`` words are those held out from training."""
    u = unseen
    people = several(rng, 3, 9, lambda: t.name(rng, unseen=u))
    networks = several(rng, 3, 7, lambda: t.title(rng, 1, 2, unseen=u))
    wifi, bluetooth = state.network.wifi, state.network.bluetooth
    joined = networks[0] if wifi.connected else ""
    return replace(
        state,
        network=replace(
            state.network,
            wifi=replace(wifi, connected=joined, saved=networks[:2], available=networks),
            bluetooth=replace(
                bluetooth,
                paired=several(rng, 0, 3, lambda: t.title(rng, 1, 2, unseen=u)),
                available=several(rng, 0, 3, lambda: t.title(rng, 1, 2, unseen=u)),
            ),
        ),
        contacts=tuple(
            Contact(n, t.number(rng), t.address(rng, unseen=u) if rng.random() < 0.5 else "", rng.random() < 0.2)
            for n in people
        ),
        messages=tuple(_thread(rng, to, u) for to in rng.sample(people, min(len(people), rng.randint(2, 6)))),
        notes=several(rng, 2, 7, lambda: _note(rng, u)),
        files=_files(rng, u),
        events=several(rng, 1, 6, lambda: _event(rng, u)),
        mails=several(rng, 2, 7, lambda: _mail(rng, u)),
        music=replace(
            state.music,
            songs=several(rng, 3, 8, lambda: Song(t.title(rng, 1, 2, unseen=u), t.name(rng, unseen=u))),
            current=0,
        ),
        media=replace(state.media, photos=several(rng, 2, 8, lambda: _photo(rng, u))),
        clock=replace(state.clock, alarms=several(rng, 1, 5, lambda: _alarm(rng, u))),
        phone=replace(
            state.phone,
            calls=several(rng, 1, 5, lambda: Call(rng.choice((rng.choice(people), t.number(rng))), _direction(rng))),
        ),
    )


def notifications(rng: random.Random, *, unseen: bool = False) -> tuple[Notification, ...]:
    """Up to four, of any app."""
    return several(
        rng, 0, 4, lambda: Notification(rng.choice(APPS_THAT_POST), t.title(rng, unseen=unseen), _text(rng, unseen))
    )


def on_desktop(rng: random.Random, state: DesktopState, *, unseen: bool = False) -> DesktopState:
    """A desktop with other files, networks and users."""
    networks = several(rng, 2, 5, lambda: t.title(rng, 1, 2, unseen=unseen))
    people = several(rng, 1, 4, lambda: User(t.name(rng, unseen=unseen), admin=rng.random() < 0.4))
    return replace(
        state,
        network=replace(state.network, available=networks, connected=networks[0] if state.network.connected else ""),
        users=replace(state.users, people=people),
        files=_desktop_files(rng, unseen),
    )


def _text(rng: random.Random, unseen: bool) -> str:
    return t.sentence(rng, unseen=unseen)


def _thread(rng: random.Random, to: str, unseen: bool) -> Thread:
    said = several(rng, 1, 4, lambda: Message(_text(rng, unseen), mine=rng.random() < 0.4))
    return Thread(to, said, unread=rng.random() < 0.4, pinned=rng.random() < 0.1, archived=rng.random() < 0.1)


def _note(rng: random.Random, unseen: bool) -> Note:
    return Note(t.title(rng, unseen=unseen), _text(rng, unseen), rng.random() < 0.15, rng.random() < 0.1)


def _event(rng: random.Random, unseen: bool) -> Event:
    place = t.title(rng, unseen=unseen) if rng.random() < 0.4 else ""
    return Event(t.title(rng, unseen=unseen), rng.randint(1, 30), rng.randrange(0, 1440, 15), place)


def _mail(rng: random.Random, unseen: bool) -> Mail:
    return Mail(
        t.name(rng, unseen=unseen),
        t.title(rng, unseen=unseen),
        _text(rng, unseen),
        rng.random() < 0.5,
        starred=rng.random() < 0.2,
        archived=rng.random() < 0.1,
    )


def _photo(rng: random.Random, unseen: bool) -> Photo:
    return Photo(t.title(rng, 1, 2, unseen=unseen), rng.choice(SUBJECTS), favourite=rng.random() < 0.2)


def _alarm(rng: random.Random, unseen: bool) -> Alarm:
    label = t.title(rng, 1, 2, unseen=unseen) if rng.random() < 0.6 else ""
    return Alarm(rng.randrange(0, 1440, 5), enabled=rng.random() < 0.5, label=label)


def _direction(rng: random.Random) -> Literal["in", "out", "missed"]:
    directions: tuple[Literal["in", "out", "missed"], ...] = ("in", "out", "missed")
    return rng.choice(directions)


def _files(rng: random.Random, unseen: bool) -> tuple[File, ...]:
    made = []
    for folder in ("Download", "Documents", "Pictures", "Music"):
        made.append(File(folder, folder=True))
        found = several(rng, 1, 4, lambda: t.file(rng, unseen=unseen))
        made += [File(f"{folder}/{f}", size_kb=rng.randint(1, 9000)) for f in dict.fromkeys(found)]
    return tuple(made)


def _desktop_files(rng: random.Random, unseen: bool) -> tuple[DesktopFile, ...]:
    made = []
    for folder in ("Desktop", "Documents", "Downloads", "Music", "Pictures"):
        made.append(DesktopFile(folder, folder=True))
        found = several(rng, 1, 4, lambda: t.file(rng, unseen=unseen))
        made += [_desktop_file(rng, f"{folder}/{f}", unseen) for f in dict.fromkeys(found)]
        if rng.random() < 0.3:
            made.append(DesktopFile(f"{folder}/{t.title(rng, 1, 1, unseen=unseen)}", folder=True))
    made += [
        _desktop_file(rng, f, unseen) for f in dict.fromkeys(several(rng, 0, 2, lambda: t.file(rng, unseen=unseen)))
    ]
    return tuple(made)


def _desktop_file(rng: random.Random, path: str, unseen: bool) -> DesktopFile:
    text = "\n".join(t.sentence(rng, unseen=unseen) for _ in range(rng.randint(1, 6))) + "\n"
    return DesktopFile(path, text=text if path.endswith((".txt", ".md", ".csv")) else "", size_kb=rng.randint(1, 4000))
