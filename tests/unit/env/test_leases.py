"""The ledger: leases are there before use, told apart by their owner, and swept only when that is gone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from cuarl import safe_text
from cuarl.env import leases
from cuarl.env.leases import Ledger, sweep, sweeper
from cuarl.env.processes import MARK, end_marked, marked
from cuarl.errors import CuarlError, EnvError, PrerequisiteError
from cuarl.run.owner import Owner, process_start
from cuarl.settings import Settings


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "sessions")


def owned_by(lease, **changes):
    """The lease as another owner would have written it."""
    record = lease.record.model_copy(update={"owner": lease.record.owner.model_copy(update=changes)})
    lease.path.write_text(record.model_dump_json())


def dead_pid():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def test_a_lease_is_on_disk_while_it_is_held(ledger):
    with ledger.hold("display", ":7", {"home": "/tmp/x"}) as lease:
        (found,) = ledger.leases()
        assert (found.kind, found.id, found.detail, found.state) == ("display", ":7", {"home": "/tmp/x"}, "live")
        assert found.record == lease.record
    assert ledger.leases() == [] and list(ledger.folder.iterdir()) == []
    lease.release()


def test_what_becomes_known_later_is_added(ledger):
    lease = ledger.hold("box", "mine", {"tag": "a"})
    lease.note(box="b-1")
    assert ledger.leases()[0].detail == {"tag": "a", "box": "b-1"}


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        pytest.param({}, "live", id="this process"),
        pytest.param({"started": "1"}, "orphaned", id="a process id that was given to another"),
        pytest.param({"started": ""}, "unknown", id="nobody knows when the owner started"),
        pytest.param({"started": "", "pid": 4_000_000}, "orphaned", id="and there is no such process"),
        pytest.param({"boot": "earlier"}, "orphaned", id="the machine was started anew"),
        pytest.param({"namespace": "pid:[1]"}, "unknown", id="another container"),
        pytest.param({"host": "elsewhere"}, "unknown", id="another machine"),
    ],
)
def test_the_state_tells_whether_the_owner_lives(ledger, changes, state):
    owned_by(ledger.hold("display", ":1"), **changes)
    assert ledger.leases()[0].state == state


def test_a_dead_owner_leaves_an_orphan(ledger):
    owned_by(ledger.hold("display", ":1"), pid=dead_pid())
    assert ledger.leases()[0].state == "orphaned"


def test_a_zombie_is_not_alive():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(process.pid) is None
    assert process_start(os.getpid()) == Owner.me().started


def test_secrets_stay_out(ledger):
    safe_text.remember(["hunter2-hunter2"])
    lease = ledger.hold("box", "b", {"url": "https://me:hunter2-hunter2@host/"})
    lease.note(token="hunter2-hunter2")
    assert "hunter2" not in lease.path.read_text()


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PrerequisiteError, match="can't note a session"):
        Ledger(tmp_path / "file" / "sessions").hold("display", ":1")


def test_strange_files_are_left_alone(ledger, caplog):
    lease = ledger.hold("display", ":1")
    (ledger.folder / "other.json").write_text("{")
    newer = json.loads(lease.path.read_text()) | {"version": 2}
    (ledger.folder / "newer.json").write_text(json.dumps(newer))
    assert [found.path for found in ledger.leases()] == [lease.path]
    assert "newer.json" in caplog.text and "other.json" in caplog.text


def test_a_swept_lease_is_gone_and_one_that_resists_stays(ledger, monkeypatch):
    ended = []

    async def end(lease, settings):
        if lease.id == "stuck":
            raise EnvError("it is stuck")
        ended.append(lease.id)

    monkeypatch.setitem(leases.SWEEPERS, "toy", end)
    stuck, loose = ledger.hold("toy", "stuck"), ledger.hold("toy", "loose")
    anyio.run(sweep, loose, Settings())
    with pytest.raises(EnvError, match="stuck"):
        anyio.run(sweep, stuck, Settings())
    assert ended == ["loose"] and [lease.id for lease in ledger.leases()] == ["stuck"]


def test_an_unknown_kind_cannot_be_swept():
    with pytest.raises(EnvError, match="kind"):
        sweeper("no such kind")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finding processes by mark needs /proc")
def test_processes_are_found_by_their_mark_and_ended_with_their_children(tmp_path):
    # the grandchild leaves the process group and does not mind being asked
    grandchild = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {grandchild!r}], start_new_session=True)"
    environment = {**os.environ, MARK: "mark-of-the-test"}
    with subprocess.Popen([sys.executable, "-c", child], env=environment, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert len(marked("mark-of-the-test")) == 2
        assert anyio.run(lambda: end_marked("mark-of-the-test", grace_s=0.1)) == []
    assert marked("mark-of-the-test") == []


@pytest.mark.parametrize("kind", ["display", "browser", "worker", "box"])
@pytest.mark.parametrize("id", ["", "  "])
def test_lease_without_an_id_never_kills(ledger, kind, id):
    lease = ledger.hold(kind, id)
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, MARK: id}
    ) as bystander:
        while not process_start(bystander.pid):
            pass
        assert marked(id) == []
        with pytest.raises(EnvError, match="no id"):
            anyio.run(sweep, lease, Settings())
        assert anyio.run(end_marked, id) == []
        assert bystander.poll() is None and lease.path.exists()
        bystander.communicate(b"\n")
    assert bystander.returncode == 0


def test_lease_that_lacks_what_its_sweeper_needs_is_named_and_stays(ledger):
    for kind in ("pod", "gbox", "adb"):
        lease = ledger.hold(kind, "x-1", {"undo": "["} if kind == "adb" else {})
        with pytest.raises(CuarlError):
            anyio.run(sweep, lease, Settings())
        assert lease.path.exists()


def test_lock_of_a_display_whose_process_id_was_given_to_another_is_in_nobody_s_way(tmp_path, monkeypatch):
    session = pytest.importorskip("cuarl.env.linux.session")
    monkeypatch.setattr(session, "LOCKS", tmp_path)
    lock = tmp_path / ".X77-lock"
    lock.write_text(f"{os.getpid():10}\n")
    session._unlock("77")
    assert lock.exists(), "its server may live: it was there before the lock"
    os.utime(lock, (1, 1))
    session._unlock("77")
    assert not lock.exists(), "no process of today wrote a lock in 1970"
