"""A working directory with tasks, and the command line called in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cuarl.cli.app import run
from cuarl.store import Store
from cuarl.terminal.state import STATE, State
from cuarl.trajectory import Trajectory

TASKS = [
    {"id": "wifi_off", "difficulty": "easy", "checks": [{"path": "network.wifi.enabled", "value": False}]},
    {
        "id": "dark_on",
        "difficulty": "medium",
        "preset": {"display.dark_theme": False},
        "checks": [{"path": "display.dark_theme", "value": True}],
    },
]


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class Place:
    """Runs commands in the temporary directory, with a store of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        common = {"description": "Do it", "category": "settings", "max_steps": 12}
        (folder / "tasks.json").write_text(json.dumps([{**common, **task} for task in TASKS]))

    def cuarl(self, *args: str) -> Result:
        for name in State.__slots__:
            setattr(STATE, name, getattr(State(), name))
        self._capsys.readouterr()
        code = run(args)
        return Result(code, *self._capsys.readouterr())

    def store(self) -> Store:
        return Store.open(f"sqlite:///{self.folder}/runs/cuarl.db")

    def episodes(self, run: str | None = None) -> list[Trajectory]:
        """Those that are stored, of one run or of all."""
        with self.store() as store:
            return list(store.trajectories(run=run))


def bare(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Leave no setting of the developer's in force, and no reward that an earlier test has loaded from its folder."""
    for name in list(os.environ):
        if name.startswith(("CUARL_", "POSTGRES_", "DATABASE_URL", "OPENAI_")) and name != "CUARL_TEST_POSTGRES":
            monkeypatch.delenv(name)
    monkeypatch.delitem(sys.modules, "luck", raising=False)
    monkeypatch.chdir(folder)
