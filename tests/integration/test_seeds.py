"""The commands of docs/guides/seeds.md: all are understood, and the quick ones run against the local servers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("uvicorn", reason="the local servers need the extra web")

from cuarl.local.gbox import FakeGBox
from cuarl.local.gym import FakeGym
from cuarl.local.threads import served
from tests.fakes.kubernetes import cluster
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


def tour() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seeds_tour", ROOT / "examples" / "seeds.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = tour().commands((ROOT / "docs" / "guides" / "seeds.md").read_text(encoding="utf-8"))


def test_the_page_has_commands_for_each_recipe() -> None:
    presets = {words[words.index("--preset") + 1] for words in COMMANDS if "--preset" in words}
    assert presets == {"cua-rl", "areal-cua", "ui-rl"} and len(COMMANDS) > 15
    page = "```console\n$ cuarl a \\\n    --b 'c d'\nout\n$ other\n$ cuarl e\n```\n```text\n$ cuarl f\n```\n"
    assert tour().commands(page) == [["cuarl", "a", "--b", "c d"], ["cuarl", "e"]]


def test_every_command_that_starts_something_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare(monkeypatch, tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    place = Place(tmp_path, capsys)
    with served(FakeGym().app()) as gym, served(FakeGBox("key").app()) as boxes, cluster() as pods:
        variables = {
            **pods.variables,
            "GYM_BASE_URL": gym,
            "GBOX_BASE_URL": f"{boxes}/api/v1",
            "GBOX_API_KEY": "key",
            "TINKER_API_KEY": "tml-k",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for words in COMMANDS:
            # a policy server and earlier runs are what a dry run does without
            needs_more = {"--model-base-url", "eval", "show", "verify", "db"} & set(words)
            if words[1] == "tasks":
                done = place.cuarl(*words[1:])
            elif not needs_more:
                done = place.cuarl(*words[1:], "--dry-run")
            else:
                continue
            assert done.code == 0, (words, done.err)


def test_the_tour_runs_commands_against_its_own_servers() -> None:
    """The quickest ones; what the long ones do is tested by each service's own tests."""
    quick = [i for i, words in enumerate(COMMANDS, 1) if words[1:3] == ["tasks", "gym"] or "nothing" in words]
    command = [sys.executable, str(ROOT / "examples" / "seeds.py"), "--only", *map(str, quick)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 commands succeeded" in done.stdout and "129 tasks, 103 to train on" in done.stderr
