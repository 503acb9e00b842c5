"""A person works a phone on the page of ``cuarl tasks record adb``, and the task file that comes of it is proven."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

pytest.importorskip("adbutils", reason="pip install 'cuarl[android]'")
pytest.importorskip("uvicorn", reason="the page needs the extra web")

from cuarl.local.adb_phone import FakePhone
from cuarl.local.adb_stock import StockPhone
from cuarl.sim.phone.elements import elements
from tests.fakes.adb_server import served
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration


OPTIONS = ("--no-open", "--json", "--adb-settle-ms", "5")


class Person:
    """The command in a process of its own, and somebody who acts through its page's interface."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cuarl", "tasks", "record", "adb", *OPTIONS, *words],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline() or "{}")
        base, _, token = said["url"].partition("/#")
        self.client = httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}, timeout=30)
        self._turn, self._view = 0, dict[str, Any]()

    def view(self) -> dict[str, Any]:
        """What is shown once the next turn is asked about."""
        while not (self._view.get("waiting") and self._view["turn"]["index"] == self._turn):
            seen = self._view.get("version", 0)
            self._view = self.client.get("/api/view", params={"after": seen}).json()
        return self._view

    def does(self, **action: Any) -> None:
        view = self.view()
        turn = {"episode": view["turn"]["episode"], "turn": view["turn"]["index"]}
        done = self.client.post("/api/act", json={**turn, "action": action})
        assert done.status_code == 200, done.text
        self._turn += 1

    def ends(self) -> tuple[int, str]:
        """The exit code, and what was said of errors."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def middle(phone: FakePhone, label: str) -> dict[str, int]:
    """Where a thing is on the phone's screen."""
    assert phone._sim is not None and phone._sim.world is not None
    x, y = next(one for one in elements(phone._sim.world) if one.label == label).centre
    return {"x": x, "y": y}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    return Place(tmp_path, capsys)


def test_what_is_done_on_a_phone_becomes_a_task_file_whose_plan_solves_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = StockPhone("one", clutter=0.0)
    with served(phone) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        person = Person(place.folder, "--goal", "Switch the dark theme off.", "--out", "dark.yaml")
        try:
            person.does(kind="open_app", name="Settings")
            person.view()
            while not any(one.label == "Display" for one in elements(phone._sim.world)):
                person.does(kind="scroll", direction="down", amount=200)
                person.view()
            person.does(kind="click", **middle(phone, "Display"))
            person.view()
            person.does(kind="click", **middle(phone, "Dark theme"))
            person.does(kind="finish")
            code, errors = person.ends()
        finally:
            person.close()
        assert code == 0, errors
        (made,) = yaml.safe_load((place.folder / "dark.yaml").read_text())["tasks"]
        assert made["env"] == "adb"
        assert [next(iter(line)) for line in made["plan"]][-2:] == ["click", "click"]
        assert made["plan"][0] == {"open": "Settings"} and made["plan"][-1] == {"click": "Dark theme"}
        assert made["checks"] == [{"path": "ui_night_mode", "value": 0}]
        assert made["preset"]["reads"] == {"ui_night_mode": "settings secure ui_night_mode"}
        assert made["preset"]["setup"] == ["settings put secure ui_night_mode 2"]
        assert made["preset"]["apps"] == {"Settings": "com.android.settings"}
        proof = place.cuarl("tasks", "validate", "dark.yaml", "--prove", "--seeds", "2", "--set", "env.settle_ms=5")
        assert proof.code == 0, proof.out + proof.err


def test_giving_up_writes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(StockPhone("one", clutter=0.0)) as port:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        person = Person(place.folder, "--goal", "Nothing.")
        try:
            person.does(kind="finish", success=False)
            code, errors = person.ends()
        finally:
            person.close()
        assert code == 1 and "nothing is written" in errors
        assert not (place.folder / "recorded.yaml").exists()


def test_what_can_not_be_recorded_is_said(place: Place) -> None:
    said = place.cuarl("tasks", "record", "gbox", "--goal", "Anything")
    assert said.code == 2 and "nothing can be recorded in the environment gbox" in said.err
