"""The ``db`` command, end to end."""

import json
from pathlib import Path

import pytest

from cuarl.cli.app import run
from cuarl.store import Store
from cuarl.store.migrate import migrate
from cuarl.store.migrations import versions
from cuarl.store.schema import VERSION_TABLE
from cuarl.trajectory import Turn
from cuarl.types import Finish
from tests.unit.cli.conftest import bare_terminal
from tests.unit.store.databases import query
from tests.unit.store.samples import picture, plain, save
from tests.unit.store.samples import run as run_record

pytestmark = pytest.mark.integration
__all__ = ["bare_terminal"]  # autouse: an empty folder to work in, and a bare environment

URL = "sqlite:///runs/cuarl.db"

NEWEST = f"{len(list(Path(versions.__path__[0]).glob('v*.py'))):04d}"


@pytest.fixture
def one_episode():
    shot = picture(1)
    with Store.open(URL) as store:
        store.start_run(run_record())
        turn = Turn(index=0, screenshot=shot.ref, action=Finish())
        save(store, plain(run_id="r1", turns=(turn,)), [shot])


def told(capsys, *args, code=0):
    assert run(["db", *args]) == code
    return capsys.readouterr()


def test_status_of_nothing_makes_nothing(capsys, tmp_path):
    out = told(capsys, "status").out
    assert "sqlite:///runs/cuarl.db" in out and "empty" in out
    assert not (tmp_path / "runs").exists()


def test_status_counts_rows(capsys, one_episode):
    found = json.loads(told(capsys, "status", "--json").out)
    assert (found["schema"], found["revision"], found["wal"], found["counts"]["episodes"]) == (
        "current",
        NEWEST,
        True,
        1,
    )


def test_status_of_an_older_schema_names_the_next_command(capsys):
    migrate(URL, "0001")
    assert "cuarl db migrate" in told(capsys, "status").err


def test_migrate_sets_up_goes_down_and_up_again(capsys):
    assert f"went up from base to {NEWEST}" in told(capsys, "migrate").out
    down = told(capsys, "migrate", "--to", "0001").out
    assert f"went down from {NEWEST} to 0001" in down and f"copy from before: runs/cuarl.db.{NEWEST}-" in down
    assert f"would go up from 0001 to {NEWEST}" in told(capsys, "migrate", "--dry-run").out
    assert json.loads(told(capsys, "migrate", "--json").out)["target"] == NEWEST
    assert "nothing to do" in told(capsys, "migrate").out


def test_migrate_prints_sql(capsys):
    assert "CREATE TABLE episodes" in told(capsys, "migrate", "--sql").out


def test_migrate_refuses_to_lose_rows(capsys, one_episode):
    err = told(capsys, "migrate", "--to", "base", code=1).err
    assert "would lose 1 runs, 1 episodes" in err and "--force" in err
    assert "lost: 1 runs, 1 episodes" in told(capsys, "migrate", "--to", "base", "--force").out


def test_an_unknown_revision_is_a_usage_error(capsys):
    assert 'no revision "7"' in told(capsys, "migrate", "--to", "7", code=2).err


def test_a_schema_that_is_behind_is_a_missing_prerequisite(capsys):
    migrate(URL, "0001")
    err = told(capsys, "check", code=4).err
    assert f"{int(NEWEST) - 1} revisions behind" in err and "cuarl db migrate" in err


def test_check_of_a_sound_store(capsys, one_episode):
    assert "the store is sound" in told(capsys, "check", "--deep").out


def test_check_fails_on_damage(capsys, one_episode):
    query(URL, "DELETE FROM turns")
    found = told(capsys, "check", code=1)
    assert "episode e0 has 0 of 1 turns" in found.out
    assert "the store has problems: 1" in found.err
    assert json.loads(told(capsys, "check", "--json", code=1).out)["problems"] == ["episode e0 has 0 of 1 turns"]


def test_export_and_import_copy_a_store(capsys, one_episode, tmp_path):
    assert json.loads(told(capsys, "export", "backup", "--json").out)["counts"]["episodes"] == 1
    assert "episodes" in told(capsys, "import", "backup", "--db", "sqlite:///copy/x.db").out
    assert told(capsys, "check", "--deep", "--db", "sqlite:///copy/x.db").out.strip() == "the store is sound"


def test_rebuild_needs_a_yes_and_a_readable_export(capsys, one_episode, tmp_path):
    told(capsys, "export", "backup")
    told(capsys, "rebuild", code=2)
    (tmp_path / "backup" / "runs.jsonl").write_text("{")
    told(capsys, "rebuild", "--from", "backup", "--yes", code=1)
    with Store.open(URL) as store:
        assert len(store.runs()) == 1


def test_rebuild_brings_back_a_database_of_an_unknown_schema(capsys, one_episode):
    told(capsys, "export", "backup")
    query(URL, f"UPDATE {VERSION_TABLE} SET version_num = '0099'")
    told(capsys, "check", code=4)
    found = told(capsys, "rebuild", "--from", "backup", "--yes")
    assert "rebuilt from backup" in found.out and "copy from before" in found.err
    with Store.open(URL) as store:
        assert [e.episode_id for e in store.episodes()] == ["e0"]


def test_a_url_that_cannot_be_used_is_a_usage_error_without_the_secret(capsys):
    err = told(capsys, "status", "--db", "mysql://u:hunter2-canary@h/d", code=2).err
    assert "mysql" in err and "hunter2" not in err
