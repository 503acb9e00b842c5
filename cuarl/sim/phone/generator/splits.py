"""Which part of the generated tasks a task belongs to: to train on, or held out by one thing that is new in it.

What is held out is fixed, whatever the seed: files of different seeds can be trained and evaluated on.
"""

from __future__ import annotations

from functools import lru_cache

from cuarl.sim.phone.generator.draw import Draw, share_of
from cuarl.sim.phone.generator.words import HELD_OUT_SHARE
from cuarl.tasks.task import Split

HELD_OUT_APPS = ("calendar", "music", "weather", "maps")
HELD_OUT_KINDS = (
    "setting.all_but",
    "app.clear_data",
    "wifi.forget",
    "note.archive",
    "note.append",
    "contact.call",
    "thread.pin",
    "mail.unread",
    "file.copy",
    "alarm.delete",
)
SHARES: tuple[tuple[Split, float], ...] = (
    ("train", 0.7),
    ("wording", 0.075),
    ("object", 0.075),
    ("kind", 0.075),
    ("app", 0.075),
)


def drawn(draw: Draw) -> Split:
    """The part that the next task belongs to."""
    at, ends = draw.below(1000), [round(1000 * sum(s for _, s in SHARES[: i + 1])) for i in range(len(SHARES))]
    return next(name for (name, _), end in zip(SHARES, ends, strict=True) if at < end)


@lru_cache(maxsize=4096)
def is_held_out_thing(thing: str) -> bool:
    """Whether something with a fixed name (a setting, an app, a city) is held out as an object."""
    return share_of(f"thing/{thing}") < HELD_OUT_SHARE
