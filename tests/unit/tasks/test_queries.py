from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from cuarl.env.sim.phone import SimEnv
from cuarl.tasks.check import evaluate
from cuarl.tasks.queries import QUERIES, resolve
from cuarl.tasks.task import Check, Task, TaskInstance

RECIPE = {
    "current_app", "current_activity", "wifi_enabled", "airplane_mode", "auto_time_enabled", "battery_saver_enabled",
    "brightness_level", "screen_timeout", "dnd_enabled", "bluetooth_enabled", "is_home_screen", "media_volume",
    "notification_count", "chrome_cache_cleared", "facebook_cache_cleared", "instagram_cache_cleared",
    "system_language",
    "dark_theme_enabled", "app_installed", "app_permission", "file_exists", "result_message_contains",
    "finish_message_contains", "finish_message_contains_size",
}  # fmt: skip


def check_of(query: str, expected: Any) -> Check:
    (check,) = resolve(Task(id="t", description="d", validation_query=query, expected_result=expected))
    return check


def test_every_validator_of_the_recipe_is_known() -> None:
    assert set(QUERIES) >= RECIPE


@pytest.mark.parametrize(
    ("query", "expected", "state", "holds"),
    [
        ("wifi_enabled", True, {"network": {"wifi": {"enabled": True}}}, True),
        ("wifi_enabled", False, {"network": {"wifi": {"enabled": True}}}, False),
        ("brightness_level", 255, {"display": {"brightness": 255}}, True),
        ("notification_count", 0, {"notifications": {"items": []}}, True),
        ("notification_count", 0, {"notifications": {"items": [{"app": "mail"}]}}, False),
        ("app_installed", {"package": "com.ig", "installed": False},
            {"apps": {"ig": {"package": "com.ig", "installed": True}}}, False),
        ("app_installed", {"package": "com.ig", "installed": False},
            {"apps": {"ig": {"package": "com.ig", "installed": False}}}, True),
        ("app_installed", {"package": "com.ig", "installed": False},
            {"apps": {"x": {"package": "com.ig.lite", "installed": True}}}, True),
        ("app_installed", {"package": "com.ig", "installed": True},
            {"apps": {"x": {"package": "com.ig.lite", "installed": True}}}, False),
        ("app_permission", {"package": "p", "permission": "android.permission.CAMERA", "granted": False},
         {"apps": {"x": {"package": "p", "camera": False}}}, True),
        ("file_exists", {"path": "/sdcard/Download/abc/", "exists": True}, {"files": [{"path": "Download/abc"}]}, True),
        ("file_exists", {"path": "Download/abc", "exists": False}, {"files": [{"path": "Download/abcd"}]}, True),
        ("chrome_cache_cleared", True, {"apps": {"chrome": {"cache_kb": 1023}}}, True),
        ("chrome_cache_cleared", True, {"apps": {"chrome": {"cache_kb": 1024}}}, False),
        ("current_activity", "wifi", {"ui": {"current_activity": "settings/wifi"}}, True),
    ],
)  # fmt: skip
def test_a_validator_reads_the_state(query: str, expected: Any, state: dict[str, Any], holds: bool) -> None:
    assert evaluate(check_of(query, expected), state).passed is holds


@pytest.mark.parametrize(
    ("query", "expected", "answer", "holds"),
    [
        ("result_message_contains", 83, "Brightness: 83%", True),
        ("result_message_contains", 83, "Brightness: 183", False),
        ("finish_message_contains", "73.73KB", "it takes 73.73 kB", True),
        ("finish_message_contains_size", None, "Chrome uses 51.54 MB", True),
        ("finish_message_contains_size", None, "Chrome uses 2 bytes", True),
        ("finish_message_contains_size", None, "Chrome uses 1,024GiB.", True),
        ("finish_message_contains_size", None, "Chrome uses 12 marbles", False),
        ("finish_message_contains_size", None, "Chrome uses some MB", False),
        ("finish_message_contains_size", None, "", False),
    ],
)
def test_a_validator_reads_the_answer(query: str, expected: Any, answer: str, holds: bool) -> None:
    assert evaluate(check_of(query, expected), {}, answer).passed is holds


@pytest.mark.parametrize(
    ("query", "expected", "words"),
    [
        ("wifi_enabled", "true", "true or false, not 'true'"),
        ("wifi_enabled", None, "true or false"),
        ("brightness_level", True, "a whole number"),
        ("notification_count", 3, "must be 0"),
        ("app_installed", {"package": "x"}, "a mapping of package, installed"),
        ("app_installed", {"package": "x", "installed": "no"}, "installed must be true or false"),
        ("app_permission", {"package": "p", "permission": "camra", "granted": True}, '(did you mean "camera"?)'),
        ("finish_message_contains", "", "text to look for"),
        ("wifi_enable", True, '(did you mean "wifi_enabled"?)'),
    ],
)
def test_a_wrong_expectation_is_refused(query: str, expected: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        check_of(query, expected)


def test_a_placeholder_stands_for_a_value_of_any_type() -> None:
    task = Task(id="t", description="d", validation_query="brightness_level", expected_result="{n}", params={"n": (7,)})
    filled = task.model_copy(update={"checks": resolve(task)}).instantiate(0)
    assert filled.checks == (Check(path="display.brightness", value=7),)


def test_checks_that_are_written_out_win_over_the_query() -> None:
    own = (Check(path="x", value=1),)
    assert (
        resolve(Task(id="t", description="d", checks=own, validation_query="wifi_enabled", expected_result=True)) == own
    )
    assert resolve(Task(id="t", description="d")) == ()


SAMPLES: dict[str, Any] = {
    "brightness_level": 255, "screen_timeout": 60000, "media_volume": 0, "system_language": "en",
    "current_app": "com.x",
    "current_activity": "wifi", "notification_count": 0,
    "app_installed": {"package": "com.instagram.android", "installed": False},
    "app_permission": {"package": "com.android.chrome", "permission": "location", "granted": True},
    "file_exists": {"path": "Download/abc", "exists": True}, "result_message_contains": "x",
    "finish_message_contains": "x",
    "finish_message_contains_size": None,
}  # fmt: skip


@pytest.mark.parametrize("query", sorted(QUERIES))
def test_every_validator_reads_the_simulated_phone(query: str, phone: dict[str, Any]) -> None:
    found = evaluate(check_of(query, SAMPLES.get(query, True)), phone, "an answer")
    assert isinstance(found.passed, bool)


@pytest.fixture(scope="module")
def phone() -> dict[str, Any]:
    """State of a fresh simulated phone."""

    async def state() -> dict[str, Any]:
        env = SimEnv()
        await env.reset(TaskInstance(task_id="t", goal="g"), 0)
        return dict(await env.state())

    return asyncio.run(state())
