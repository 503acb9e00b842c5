"""Tasks of the simulated phone on a device that has nothing but Android's own shell.

Their presets and checks name paths of the simulated phone's state. ``facts`` has what the shell tells and sets of it:
a task that needs no more is set up, judged and undone by the shell; of any other ``missing`` says what it needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cuarl.env.shell_checks.facts import FACTS, start
from cuarl.env.shell_checks.reads import FIELDS, Shell
from cuarl.errors import EnvError, RewardError
from cuarl.tasks.check import ANSWER, describe, evaluate
from cuarl.tasks.task import Check, Task, TaskInstance

_NEXT = "cuarl-next"
"""What is printed between what two commands print."""


class Prepared(NamedTuple):
    """The commands that set a device up for a task, and those that bring it back to what it was."""

    setup: tuple[str, ...]
    teardown: tuple[str, ...]


def missing(task: TaskInstance) -> list[str]:
    """What a task needs that no shell reads or sets, in words; empty if it can be judged by the shell alone."""
    unread = [f"reading {c.path}" for c in task.checks if c.path != ANSWER and c.path not in FACTS]
    unset = [
        f"setting {path}"
        for path, value in task.preset.items()
        if (FACTS[path].put is None if path in FACTS else start(path, value) is None)
    ]
    return [*unread, *unset]


def in_these_words(task: TaskInstance) -> bool:
    """Whether a task for a device speaks of the state by its paths, and not of readings of its own."""
    return bool(task.checks) and not any(name in task.preset for name in FIELDS) and not missing(task)


def by_shell(task: TaskInstance, state: str) -> bool:
    """Whether a device with Android's own shell alone is to judge it; ``state`` is what the run says of phone tasks."""
    return state == "shell" if task.env == "phone" else task.env in ("adb", "gbox") and in_these_words(task)


def left_out(tasks: Sequence[Task], state: str) -> dict[str, str]:
    """Why tasks of the simulated phone can't be judged by the shell, where ``state`` says that it judges; by id."""
    if state != "shell":
        return {}
    found = {task.id: missing(task.instantiate(0)) for task in tasks if task.env == "phone"}
    return {name: ", ".join(needs) for name, needs in found.items() if needs}


async def prepared(task: TaskInstance, read: Shell) -> Prepared:
    """How to set the device up for ``task``. What it is now is read, so that it can be brought back."""
    facts = [path for path in _asked(task) if FACTS[path].put]
    printed = await _printed(facts, read)
    wanted = _wanted(task)
    setup, teardown = list[str](), list[str]()
    for path in facts:
        fact, now = FACTS[path], FACTS[path].read(printed[path])
        assert fact.put is not None
        setup += fact.before
        setup += fact.put(wanted[path], printed[path]) if path in wanted else ()
        teardown += fact.put(now, printed[path]) if isinstance(now, bool | int | str) else ()
        teardown += fact.after
    for path, value in task.preset.items():
        setup += start(path, value) or ()
    return Prepared(tuple(setup), (*teardown, *_removals(task.checks)))


async def state(task: TaskInstance, read: Shell) -> dict[str, Any]:
    """What the task's checks name and what nothing may change without being asked, as the simulated phone nests it.

    Raises EnvError if the shell fails.
    """
    paths = [*_asked(task), *(path for path, fact in FACTS.items() if fact.guarded)]
    found: dict[str, Any] = {}
    for path, text in (await _printed(dict.fromkeys(paths), read)).items():
        *above, last = path.split(".")
        node = found
        for name in above:
            node = node.setdefault(name, {})
        value = FACTS[path].read(text)
        node[last] = {**value, **node.get(last, {})} if isinstance(value, dict) else value
    return found


def volatile(task: TaskInstance) -> tuple[str, ...]:
    """Globs of state paths that change by themselves with what the task asks for."""
    return tuple(glob for path in _asked(task) for glob in FACTS[path].changes)


async def see_undone(task: TaskInstance, read: Shell) -> None:
    """See that there is something to do. Raises EnvError for a task that is done before it begins."""
    found = await state(task, read)
    checks = [check for check in task.checks if check.path != ANSWER]
    try:
        held = [check for check in checks if evaluate(check, found).passed]
    except RewardError as error:
        raise EnvError(f"the device's shell does not tell what task {task.task_id} is judged by: {error}") from error
    gone = [check for check in held if check.op == "lacks" and check.path == "apps"]  # an app that was never there
    if gone or (held and len(held) == len(task.checks)):
        what = describe((gone or held)[0])
        raise EnvError(f"on this device {what} holds before task {task.task_id} has begun: there is nothing to do")


# --- the paths -----------------------------------------------------------------------------------------------------


def _asked(task: TaskInstance) -> list[str]:
    """The paths that the task's checks and preset name, each once."""
    names = [*task.preset, *(check.path for check in task.checks)]
    return [path for path in dict.fromkeys(names) if path in FACTS]


def _wanted(task: TaskInstance) -> dict[str, Any]:
    """What is to be set: the preset, and the opposite of what a check asks of a switch."""
    opposite = {c.path: not c.value for c in task.checks if c.op == "equals" and isinstance(c.value, bool)}
    return {**opposite, **{path: value for path, value in task.preset.items() if path in FACTS}}


def _removals(checks: Sequence[Check]) -> list[str]:
    """The commands that remove what an episode was asked to make, and which was not there before."""
    found = []
    for check in checks:
        if check.op != "has" or not isinstance(check.value, Mapping):
            continue
        if check.path == "files":
            found.append(f"rm -rf {shlex.quote('/sdcard/' + str(check.value['path']))}")
        elif check.path == "contacts":
            where = f"display_name='{str(check.value['name']).replace(chr(39), chr(39) * 2)}'"
            found.append(
                f"content delete --uri content://com.android.contacts/raw_contacts --where {shlex.quote(where)}"
            )
    return found


async def _printed(paths: Collection[str], read: Shell) -> dict[str, str]:
    """What the command of each path prints, asked for at once."""
    commands = list(dict.fromkeys(FACTS[path].command for path in paths))
    if not commands:
        return {}
    _, output = await read(f"; echo {_NEXT}; ".join(commands))
    parts = output.split(f"{_NEXT}\n")
    if len(parts) != len(commands):
        raise EnvError(f"the device's shell ended early: {output.strip()[-200:]}")
    told = dict(zip(commands, parts, strict=True))
    return {path: told[FACTS[path].command] for path in paths}
