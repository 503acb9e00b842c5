"""``cuarl sessions``: what is listed and what is swept."""

import json

import pytest

from cuarl.cli.app import run
from cuarl.env import leases
from cuarl.env.leases import Ledger
from cuarl.errors import EnvError


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A live, an orphaned, a stuck orphaned and an unknown toy, and the list of those that were ended."""
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    ended = []

    async def end(lease, settings):
        if lease.id == "stuck":
            raise EnvError("it is stuck")
        ended.append(lease.id)

    monkeypatch.setitem(leases.SWEEPERS, "toy", end)
    ledger = Ledger(tmp_path / "sessions")
    for name, changes in (("live", {}), ("lost", {"started": "0"}), ("far", {"host": "elsewhere"})):
        lease = ledger.hold("toy", name, {"colour": "red"})
        owner = lease.record.owner.model_copy(update=changes)
        lease.path.write_text(lease.record.model_copy(update={"owner": owner}).model_dump_json())
    return ledger, ended


def test_list_says_who_lives(toys, capsys):
    assert run(["sessions", "list"]) == 0
    said = capsys.readouterr()
    assert [line.split()[1:3] for line in said.out.splitlines()[1:]] == [
        ["far", "unknown"],
        ["live", "live"],
        ["lost", "orphaned"],
    ]
    assert "colour=red" in said.out and "1 orphaned; next: cuarl sessions sweep" in said.err


def test_list_as_json(toys, capsys):
    assert run(["sessions", "list", "--json", "--kind", "toy"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {item["id"]: item["state"] for item in found} == {"live": "live", "lost": "orphaned", "far": "unknown"}


def test_an_empty_ledger_is_no_error(tmp_path, capsys):
    assert run(["sessions", "list", "--sessions-dir", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert run(["sessions", "sweep", "--sessions-dir", str(tmp_path)]) == 0
    assert "nothing to sweep" in capsys.readouterr().err


def test_sweep_takes_orphans_only(toys, capsys):
    ledger, ended = toys
    assert run(["sessions", "sweep", "--dry-run"]) == 0 and ended == []
    assert run(["sessions", "sweep"]) == 0
    assert ended == ["lost"] and {lease.id for lease in ledger.leases()} == {"live", "far"}


def test_sweep_all_needs_a_yes(toys, capsys):
    ledger, ended = toys
    assert run(["sessions", "sweep", "--all"]) == 2 and ended == []
    assert run(["sessions", "sweep", "--all", "--yes", "--json"]) == 0
    assert sorted(ended) == ["far", "live", "lost"] and ledger.leases() == []


def test_one_that_resists_does_not_protect_the_others(toys, capsys):
    ledger, _ended = toys
    lease = ledger.hold("toy", "stuck")
    owner = lease.record.owner.model_copy(update={"started": "0"})
    lease.path.write_text(lease.record.model_copy(update={"owner": owner}).model_dump_json())
    assert run(["sessions", "sweep", "--json"]) == 1
    results = {item["id"]: item for item in json.loads(capsys.readouterr().out)}
    assert results["lost"]["outcome"] == "swept" and results["stuck"]["error"] == "it is stuck"
    assert "stuck" in {lease.id for lease in ledger.leases()}
