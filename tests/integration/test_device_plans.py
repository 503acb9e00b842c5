"""Plans of tasks on phones, in boxes, in a gym's devices and in pods: proven, played and told by whole commands."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")
pytest.importorskip("uvicorn", reason="the local servers need the extra web")

from cuarl.env.pods.manifest import load
from cuarl.env.sim.devices import make_sim
from cuarl.local.adb_phone import FakePhone
from cuarl.local.adb_stock import StockPhone
from cuarl.tasks.source import load as load_tasks
from cuarl.types import Click, Finish
from tests.fakes.adb_server import served
from tests.fakes.gbox_server import KEY, serving
from tests.fakes.gym_server import field
from tests.fakes.kubernetes import cluster
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration

DARK: dict[str, Any] = {
    "id": "dark",
    "description": "Switch the dark theme on.",
    "max_steps": 20,
    "preset": {
        "setup": ["settings put secure ui_night_mode 1"],
        "reads": {"night": "settings secure ui_night_mode"},
    },
    "checks": [{"path": "night", "value": 2}],
}
WAY: list[dict[str, Any]] = [{"scroll": "down", "until": "Display"}, {"click": "Display"}, {"click": "Dark theme"}]
ON_ADB = {**DARK, "env": "adb", "plan": [{"open": "Settings"}, *WAY]}
IN_BOX = {
    **DARK,
    "env": "gbox",
    "plan": WAY,
    "preset": {**DARK["preset"], "setup": [*DARK["preset"]["setup"], "am start -a android.settings.SETTINGS"]},
}
GYM_ID = "train_05_airplane_mode"
IN_GYM = {
    "id": GYM_ID,
    "description": "Switch airplane mode on.",
    "env": "gym",
    "max_steps": 20,
    "plan": [
        {"scroll": "down", "until": "Settings"},
        {"click": "Settings"},
        {"scroll": "down", "until": "Network & internet"},
        {"click": "Network & internet"},
    ],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    return Place(tmp_path, capsys)


def write(place: Place, *tasks: dict[str, Any]) -> str:
    (place.folder / "mine.json").write_text(json.dumps(tasks))
    return "mine.json"


def proofs(place: Place, file: str, *more: str) -> dict[str, dict[str, Any]]:
    """What ``--prove`` says of each task, by its id."""
    said = place.cuarl("tasks", "validate", file, "--prove", "--json", *more)
    assert said.code in (0, 3), said.err
    return {one["task_id"]: one for one in json.loads(said.out)["proofs"]}


@pytest.fixture
def phones(monkeypatch: pytest.MonkeyPatch):
    pair = StockPhone("one", clutter=0.0), StockPhone("two", clutter=0.0)
    with served(*pair) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        yield pair


def test_a_plan_is_proven_on_phones_several_at_once(place: Place, phones: tuple[FakePhone, ...]) -> None:
    bad = {**ON_ADB, "id": "lost", "plan": [{"open": "Settings"}, {"click": "Nowhere"}]}
    file = write(place, ON_ADB, bad, {**ON_ADB, "id": "planless", "plan": []})
    told = proofs(place, file, "--seeds", "2", "--jobs", "2", "--set", "env.settle_ms=5")
    assert told["dark"] == {"task_id": "dark", "failed": 0, "steps": told["dark"]["steps"], "problems": []}
    assert "step 2 of the plan, click text" in told["lost"]["problems"][0]["problem"]
    assert told["planless"]["problems"][0]["problem"].startswith("it has no plan")
    assert all(any("screencap" in line for line in phone.ran) for phone in phones), "both phones had episodes"


def test_commands_say_what_was_never_proven_until_it_is(place: Place, phones: tuple[FakePhone, ...]) -> None:
    file = write(place, ON_ADB)
    asked = ("rollout", "--env", "adb", "--tasks", file, "--agent", "oracle", "--adb-settle-ms", "5", "--dry-run")
    assert (
        f"1 of 1 tasks were never proven, such as dark: cuarl tasks validate {file} --prove" in place.cuarl(*asked).err
    )
    shown = place.cuarl("tasks", "validate", file, "--prove", "--seeds", "1", "--set", "env.settle_ms=5")
    assert shown.code == 0 and "dark  1/1" in shown.out, shown.err
    assert "never proven" not in place.cuarl(*asked).err


def test_what_a_phone_can_not_follow_is_an_error_before_anything_starts(place: Place) -> None:
    file = write(place, {**ON_ADB, "plan": [{"click": {"css": "#save"}}]})
    said = place.cuarl("tasks", "validate", file)
    assert said.code == 2
    assert "step 1 of the plan" in said.out and "give one of text, description, id, class, label, at" in said.out


def test_a_plan_is_recorded_in_the_policy_s_own_words(place: Place, phones: tuple[FakePhone, ...]) -> None:
    file = write(place, ON_ADB)
    said = place.cuarl(
        *("rollout", "--env", "adb", "--tasks", file, "--agent", "demonstration"),
        *("--adb-settle-ms", "5", "--episodes", "4", "--name", "d"),
    )
    assert said.code == 0, said.err
    episodes = place.episodes()
    assert [one.success for one in episodes] == [True] * 4
    turns = [turn for one in episodes for turn in one.turns]
    assert all(turn.sampled is not None and turn.sampled.token_ids for turn in turns)
    taps = [turn.action.x for turn in turns if isinstance(turn.action, Click)]
    assert any(x > 94 for x in taps), "spread over the rows, and not only at their texts, which end there"


def test_tasks_of_the_simulated_phone_have_no_plan_for_a_bare_shell(
    place: Place, phones: tuple[FakePhone, ...]
) -> None:
    said = place.cuarl(
        "rollout", "--env", "adb", "--adb-state", "shell", "--tasks", "train_02_enable_wifi", "--agent", "oracle"
    )
    assert said.code == 2 and "nothing tells how these tasks are solved" in said.err


def test_a_plan_is_proven_in_boxes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(stock=True) as (fake, url):
        monkeypatch.setenv("GBOX_API_KEY", KEY)
        monkeypatch.setenv("GBOX_BASE_URL", url)
        told = proofs(place, write(place, IN_BOX), "--seeds", "2", "--jobs", "2", "--set", "env.settle_ms=5")
        assert told["dark"]["problems"] == []
        assert fake.counts()["made"] == 2 and fake.counts()["live"] == 0


def test_a_plan_is_proven_by_the_verdict_of_a_gym(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(place, {**IN_GYM, "plan": [*IN_GYM["plan"], {"click": "Airplane mode"}]})
    with field() as servers:
        for name, value in servers.variables.items():
            monkeypatch.setenv(name, value)
        told = proofs(place, file, "--seeds", "2", "--set", "env.settle_ms=5")
        assert told[GYM_ID]["problems"] == []
        short = proofs(place, write(place, IN_GYM), "--seeds", "1", "--set", "env.settle_ms=5")
        assert short[GYM_ID]["problems"][0]["problem"] == "the oracle missed network.airplane_mode"
        played = place.cuarl(
            "rollout", "--env", "gym", "--tasks", file, "--agent", "oracle", "--gym-settle-ms", "5", "--episodes", "1"
        )
        assert played.code == 0, played.err
        assert servers.gym.counts()["live"] == 0


def clicks_of(task_id: str) -> list[dict[str, Any]]:
    """Where the simulated desktop's own oracle clicks, as lines of a plan."""
    (task,) = load_tasks([task_id], role=None).tasks

    async def follow() -> list[dict[str, Any]]:
        env, found = make_sim("desktop", "small", clutter=0.0), list[dict[str, Any]]()
        await env.reset(task.instantiate(0), 0)
        while not isinstance(action := env.oracle_action(), Finish):
            assert isinstance(action, Click)
            found.append({"click": {"at": [action.x, action.y]}, "count": action.count})
            await env.step(action)
        return found

    return asyncio.run(follow())


def test_a_plan_of_pixels_is_proven_in_sessions_of_another_server(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = dict(load().body)
    manifest["spec"]["containers"][0]["args"] = ["sessions", "serve", "desktop", "--task", "desk_dark_style"]
    (place.folder / "pod.yaml").write_text(yaml.safe_dump(manifest))
    form = {
        "id": "form",
        "description": "Choose the dark style.",
        "env": "pods",
        "max_steps": 20,
        "checks": [{"path": "progress.num_correct_submissions", "value": 1}],
        "plan": clicks_of("desk_dark_style"),
    }
    with cluster() as running:
        for name, value in running.variables.items():
            monkeypatch.setenv(name, value)
        more = ("--set", "env.manifest=pod.yaml", "--set", "env.settle_ms=5")
        told = proofs(place, write(place, form), "--seeds", "2", *more)
        assert told["form"]["problems"] == []
        assert running.fake.counts()["live"] == 0
    said = place.cuarl("tasks", "validate", write(place, {**form, "plan": [{"click": "Dark"}]}))
    assert said.code == 2 and "name a place by at" in said.out


def test_tasks_of_the_simulated_phone_keep_their_plans_in_pods(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    contact = {
        "id": "new_contact",
        "description": "Add Zoe Quist, 555-0199, to the contacts.",
        "env": "phone",
        "max_steps": 20,
        "checks": [{"path": "contacts", "op": "has", "value": {"name": "Zoe Quist", "phone": "555-0199"}}],
        "plan": [
            {"open": "contacts/new"},
            {"type": "Zoe Quist", "into": "Name"},
            {"type": "555-0199", "into": "Phone"},
            {"tap": "Save contact"},
        ],
    }
    with cluster() as running:
        for name, value in running.variables.items():
            monkeypatch.setenv(name, value)
        file = write(place, contact)
        said = place.cuarl(
            *("rollout", "--env", "pods", "--tasks", file, "--agent", "oracle", "--episodes", "2"),
            *("--pods-settle-ms", "5"),
        )
    assert said.code == 0, said.err
    assert [episode.success for episode in place.episodes()] == [True, True]
