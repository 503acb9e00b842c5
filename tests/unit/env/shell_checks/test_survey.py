"""What has changed on a device, as readings and checks that may be meant."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cuarl.env.shell_checks.reads import read, read_all
from cuarl.env.shell_checks.survey import PEOPLE, suggested, survey
from cuarl.local.adb_stock import StockPhone
from cuarl.tasks.check import evaluate
from cuarl.tasks.task import Check
from cuarl.types import OpenApp

BEFORE: dict[str, Any] = {
    "settings system screen_brightness": 40,
    "settings global last_sync": 1764460000000,
    "settings secure old": "x y",
    "package org.example.old": True,
    "files /sdcard/Documents": ["a.txt"],
    PEOPLE: ["Ada"],
    "foreground": {"app": "com.android.launcher3", "activity": ".Launcher"},
}


@pytest.mark.parametrize(
    ("changes", "reads", "checks", "setup"),
    [
        ({}, {}, [], []),
        (
            {"settings system screen_brightness": 255},
            {"screen_brightness": "settings system screen_brightness"},
            [{"path": "screen_brightness", "value": 255}],
            ["settings put system screen_brightness 40"],
        ),
        (
            {"settings secure new": 1},
            {"new": "settings secure new"},
            [{"path": "new", "value": 1}],
            ["settings delete secure new"],
        ),
        ({"settings global last_sync": 1764460099000}, {}, [], []),
        (
            {"package org.example.old": None, "package org.example.notes": True},
            {"old": "package org.example.old", "notes": "package org.example.notes"},
            [{"path": "old", "value": False}, {"path": "notes", "value": True}],
            [],
        ),
        (
            {"files /sdcard/Documents": ["a.txt", "b c.txt"]},
            {"documents": "files /sdcard/Documents"},
            [{"path": "documents", "op": "contains", "value": "b c.txt"}],
            ["rm -rf '/sdcard/Documents/b c.txt'"],
        ),
        (
            {PEOPLE: ["Zoe"]},
            {"contacts": PEOPLE},
            [
                {"path": "contacts", "op": "contains", "value": "Zoe"},
                {"path": "contacts", "op": "not_contains", "value": "Ada"},
            ],
            [],
        ),
        (
            {"foreground": {"app": "com.android.deskclock", "activity": ".Clock"}},
            {"shown": "foreground"},
            [{"path": "shown.app", "value": "com.android.deskclock"}],
            [],
        ),
    ],
)
def test_checks_are_suggested_of_what_has_changed(
    changes: dict[str, Any], reads: dict[str, str], checks: list[Any], setup: list[str]
) -> None:
    after = {text: value for text, value in {**BEFORE, **changes}.items() if value is not None}
    assert suggested(BEFORE, after) == (reads, checks, setup)


def test_no_app_is_in_front_while_the_notifications_are_pulled_down() -> None:
    async def shade(command: str) -> tuple[int, str]:
        return 0, "  mCurrentFocus=Window{4a81c0d u0 NotificationShade}\n"

    assert asyncio.run(read("foreground", shade)) == {"app": "", "activity": ""}
    gone = suggested(BEFORE, {**BEFORE, "foreground": {"app": "", "activity": ""}})
    assert gone.checks == [], "nothing is asked of a device by pulling something down"


def test_two_readings_of_one_name_are_told_apart() -> None:
    found = suggested({}, {"settings system wifi": 1, "settings global wifi": 2})
    assert list(found.reads) == ["wifi", "wifi_2"]


def test_what_the_shell_of_a_stock_phone_tells_can_be_read_again_as_a_task_reads_it() -> None:
    async def main() -> None:
        phone = StockPhone("one", clutter=0.0)
        sim = await phone.sim()

        async def shell(command: str) -> tuple[int, str]:
            return await phone.answer(sim, command)

        before = await survey(shell)
        assert {"settings system screen_brightness", "package com.android.settings", PEOPLE} <= set(before)
        await phone.change("display.dark_theme", not sim.world.get("display.dark_theme"))  # type: ignore[union-attr]
        await phone.change("display.auto_rotate", not sim.world.get("display.auto_rotate"))  # type: ignore[union-attr]
        await sim.step(OpenApp(name="Clock"))
        found = suggested(before, await survey(shell))
        assert set(found.reads) == {"ui_night_mode", "accelerometer_rotation"}
        state = await read_all(found.reads, shell)
        for check in found.checks:
            assert evaluate(Check(**check), state).passed
            assert not evaluate(Check(**check), {name: before[text] for name, text in found.reads.items()}).passed

    asyncio.run(main())
