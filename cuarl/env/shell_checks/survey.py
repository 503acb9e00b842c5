"""All that the shell of any Android reads of a device at once, by the words of readings: to see what has changed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cuarl.env.shell_checks.reads import NAMESPACES, Shell, installed_packages, read, value_of
from cuarl.errors import EnvError

PEOPLE = "content content://com.android.contacts/contacts display_name"
FRONT = "foreground"
FOLDERS = tuple(f"/sdcard/{name}" for name in ("Download", "Documents", "DCIM/Camera", "Pictures", "Music", "Movies"))
OTHERS = (PEOPLE, FRONT, *(f"files {folder}" for folder in FOLDERS))
MOST_LINES = 3
"""Of new items in a list that are suggested as checks."""
_SETTING = re.compile(r"^([^\s=]+)=(.*)$", re.MULTILINE)
_MOMENT = re.compile(r"-?\d{10,}")
"""What counts time, and nobody's doing."""


class Suggested(NamedTuple):
    """What a task may read and check, and how it is brought back before an episode."""

    reads: dict[str, str]
    checks: list[dict[str, Any]]
    setup: list[str]


async def survey(shell: Shell) -> dict[str, Any]:
    """Each reading that the device gives, with its value. Raises EnvError if the shell fails."""
    found: dict[str, Any] = {}
    for space in NAMESPACES:
        status, printed = await shell(f"settings list {space}")
        pairs = _SETTING.findall(printed) if status == 0 else ()
        found |= {f"settings {space} {key}": value_of(value) for key, value in pairs}
    found |= {f"package {name}": True for name in await installed_packages(shell)}
    for text in OTHERS:
        try:
            found[text] = await read(text, shell)
        except EnvError:  # a device without such a thing, as a tablet without contacts
            continue
    return found


def suggested(before: Mapping[str, Any], after: Mapping[str, Any]) -> Suggested:
    """Checks that hold in ``after``, and not in ``before``. Which of them are meant only a person knows."""
    made = Suggested({}, [], [])
    changed = [text for text in dict.fromkeys((*before, *after)) if before.get(text) != after.get(text)]
    for text in changed:
        if text == FRONT or any(_MOMENT.fullmatch(str(one.get(text))) for one in (before, after)):
            continue
        _suggest(made, text, before.get(text), after.get(text))
    front = after.get(FRONT, {}).get("app") if FRONT in changed else ""
    if front and not made.checks:
        made.reads["shown"] = FRONT
        made.checks.append({"path": "shown.app", "value": front})
    return made


def _suggest(made: Suggested, text: str, old: Any, new: Any) -> None:
    name = _name(text, made.reads)
    kind, *rest = text.split(maxsplit=2)
    if isinstance(old, list) or isinstance(new, list):
        checks = _of_lists(name, old or [], new or [])
    elif kind == "package":
        checks = [{"path": name, "value": bool(new)}]
    else:
        checks = [{"path": name, "value": new}] if new is not None else []
    if not checks:
        return
    made.reads[name] = text
    made.checks.extend(checks)
    if kind == "settings":
        space, key = rest
        back = f"put {space} {key} {shlex.quote(str(old))}" if old is not None else f"delete {space} {key}"
        made.setup.append(f"settings {back}")
    elif kind == "files":
        made.setup.extend(f"rm -rf {shlex.quote(f'{rest[0]}/{one}')}" for one in new or [] if one not in (old or []))


def _of_lists(name: str, old: Sequence[Any], new: Sequence[Any]) -> list[dict[str, Any]]:
    come, gone = [one for one in new if one not in old], [one for one in old if one not in new]
    checks = [{"path": name, "op": "contains", "value": one} for one in come[:MOST_LINES]]
    return checks + [{"path": name, "op": "not_contains", "value": one} for one in gone[:MOST_LINES]]


def _name(text: str, taken: Mapping[str, str]) -> str:
    """A short name of one's own for a reading: what a check's path begins with."""
    words = text.split()
    last = {"content": words[1].rpartition("/")[2] if len(words) > 1 else ""}.get(words[0], words[-1])
    plain = re.sub(r"[^a-z0-9]+", "_", re.split(r"[./]", last)[-1].lower()).strip("_") or words[0]
    number = next(n for n in range(1, len(taken) + 2) if (plain if n == 1 else f"{plain}_{n}") not in taken)
    return plain if number == 1 else f"{plain}_{number}"
