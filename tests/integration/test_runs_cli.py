"""``cuarl runs`` and ``cuarl episodes`` over what real commands have recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuarl.store.records import HumanVerdict
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    """Two runs: of an agent that does nothing, and of one that knows."""
    bare(monkeypatch, tmp_path)
    made = Place(tmp_path, capsys)
    for agent in ("nothing", "oracle"):
        assert made.cuarl("rollout", "--tasks", "tasks.json", "--agent", agent, "--name", f"by-{agent}").code == 0
    return made


def test_runs_are_listed_the_newest_first_and_chosen(place: Place) -> None:
    rows = place.cuarl("runs", "list").out.splitlines()
    assert [row.split()[:3] for row in rows] == [
        ["run", "what", "status"],
        ["by-oracle", "rollout", "completed"],
        ["by-nothing", "rollout", "completed"],
    ]
    assert [one["name"] for one in json.loads(place.cuarl("runs", "list", "--name", "noth", "--json").out)] == [
        "by-nothing"
    ]
    assert "nan" not in "\n".join(rows), "what was not measured is a dash"
    assert "no runs like that" in place.cuarl("runs", "list", "--status", "failed").err


def test_a_run_is_shown_by_the_beginning_of_its_name_and_an_unclear_one_is_refused(place: Place) -> None:
    assert "completed" in place.cuarl("runs", "show", "by-o").out
    assert json.loads(place.cuarl("runs", "show", "--json").out)["run"]["name"] == "by-oracle"
    unclear = place.cuarl("runs", "show", "by-")
    assert unclear.code == 2 and "2 runs begin so: by-" in unclear.err
    assert place.cuarl("runs", "show", "other").code == 2


def test_failed_episodes_of_a_run_are_listed_and_a_persons_verdict_wins(place: Place) -> None:
    failed = json.loads(place.cuarl("episodes", "by-nothing", "--failed", "--json").out)
    assert [one["task_id"] for one in failed] == ["wifi_off", "dark_on"]
    assert json.loads(place.cuarl("episodes", "by-oracle", "--failed", "--json").out) == []
    with place.store() as store:
        store.save_human_verdict(HumanVerdict(episode_id=failed[0]["id"], success=True))
    shown = place.cuarl("episodes", "by-nothing", "--task", "wifi_off").out
    assert "success (overruled)" in shown and "dark_on" not in shown
    assert len(place.cuarl("episodes", "by-oracle", "--limit", "1").out.splitlines()) == 2


def test_a_removed_run_is_gone_from_the_store_and_the_disk_and_others_stay(place: Place) -> None:
    assert place.cuarl("runs", "rm", "by-nothing").code == 2, "nobody was asked"
    removed = place.cuarl("runs", "rm", "by-nothing", "--yes")
    assert removed.code == 0 and "2 episodes" in removed.out
    assert not (place.folder / "runs" / "by-nothing").exists() and (place.folder / "runs" / "by-oracle").is_dir()
    assert [t.agent for t in place.episodes()] == ["oracle", "oracle"]
