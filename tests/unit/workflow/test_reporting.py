"""A run tells a monitor elsewhere: the real one, over a socket, also one that is away, loses answers, or refuses."""

import json
import logging
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace

import anyio
import pytest
from pydantic import SecretStr

from cuarl.errors import ConfigError, MissingSecret, StoreError
from cuarl.run import Run
from cuarl.settings import Settings
from cuarl.store import Store
from cuarl.store.ingest import Ingest
from cuarl.workflow import reporting
from cuarl.workflow.job import Job
from cuarl.workflow.monitoring import Options, monitor_app
from cuarl.workflow.reporting import SENT, SPOOL, Spool, check_monitor, send_rest
from cuarl.workflow.reports import Item
from cuarl.workflow.training import train
from tests.unit.workflow.switch import experiment
from tests.unit.workflow.test_training import SHORT, unmoved

uvicorn = pytest.importorskip("uvicorn")


@pytest.fixture
def there(tmp_path):
    """The store of the monitor."""
    with Store.open(f"sqlite:///{tmp_path}/monitor/x.db") as store:
        yield store


@pytest.fixture
def token(there):
    return Ingest(there.engine).create_token("phones", at=1.0)[1]


class Faults:
    """An application that now and then fails: before its work, or behind it, when the answer is lost.

    An answer may be an error, be cut off, or not come in time.
    """

    def __init__(self, app, faults):
        self._app, self._faults, self.asked = app, list(faults), 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self.asked += 1
        fault = self._faults.pop(0) if self._faults else ""
        if fault != "before":
            await self._app(scope, receive, send if not fault else self._lost)
        if fault == "silent":
            await anyio.sleep(1.5)
        if fault in ("cut", "silent"):
            head = [(b"content-length", b"100")]
            await send({"type": "http.response.start", "status": 200, "headers": head})
            await send({"type": "http.response.body", "body": b'{"'})
        elif fault:
            status = 400 if fault == "refused" else 503
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b'{"error": "no"}'})

    async def _lost(self, message):
        pass


@contextmanager
def listening(there, sock, faults=()):
    app = Faults(monitor_app(there, Options()), faults)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        yield app
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def sock():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def asked(tmp_path, sock, token, resume=None, **fields):
    found = experiment(tmp_path, **SHORT | fields)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    settings = found.settings.model_copy(
        update={"monitor_base_url": url, "project_id": "phones", "project_token": SecretStr(token)}
    )
    return replace(found, settings=settings, resume=resume)


def finished(tmp_path, monkeypatch, sock, token, start=0, **fields):
    made = asked(tmp_path, sock, token, **fields)
    job = Job.of(made)
    unmoved(monkeypatch, job, start=start)
    return train(job).run, made.settings


def assert_told(there, tmp_path, run, number=1):
    """The monitor knows every episode, metric and evaluation of the run, once and as it was."""
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as here:
        mine = {t.episode_id: t for t in here.trajectories(run=run.run_id)}
        theirs = {t.info["rollout_id"]: t for t in there.trajectories(run=f"phones~{number}")}
        assert set(mine) == set(theirs) and mine
        for name, t in theirs.items():
            same = ("reward", "success", "step", "purpose", "task_id", "goal", "attempt", "stop", "final_screenshot")
            assert {f: getattr(t, f) for f in same} == {f: getattr(mine[name], f) for f in same}
            assert [x.action for x in t.turns] == [x.action for x in mine[name].turns]
            for turn in t.turns:
                assert there.blobs.png(turn.screenshot.digest) == here.blobs.png(turn.screenshot.digest)
        assert {e.step: e.metrics["success_rate"] for e in there.evaluations()} == {
            e.step: e.metrics["success_rate"] for e in here.evaluations()
        }
        told = {(m.step, m.name): m.value for m in there.metrics(f"phones~{number}")}
        assert {(m.step, m.name): m.value for m in here.metrics(run.run_id) if m.step}.items() <= told.items()


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "cuarl.workflow.reporting"]


def test_a_monitor_knows_all_of_a_run_and_goes_on_with_a_resumed_one(tmp_path, monkeypatch, there, token, sock, caplog):
    with listening(there, sock):
        run, _ = finished(tmp_path, monkeypatch, sock, token)
        assert_told(there, tmp_path, run)
        finished(tmp_path, monkeypatch, sock, token, start=2, resume=run.path, max_steps=3)
    assert_told(there, tmp_path, run)
    [known] = there.runs()
    assert (known.name, known.status, known.total_steps, known.step) == (run.name, "completed", 3, 3)
    assert known.config["group_size"] == 2 and warnings(caplog) == []
    assert token not in (run.path / SPOOL).read_text() + (run.path / SENT).read_text()


@pytest.mark.parametrize(
    "faults",
    [("before", "after"), ("after",) * 3, ("cut", "before", "cut"), ("silent", "cut")],
    ids=["both", "answers lost", "connections cut", "no answer in time"],
)
def test_what_may_have_been_lost_is_sent_again_and_there_once(
    tmp_path, monkeypatch, there, token, sock, caplog, faults
):
    monkeypatch.setattr(reporting, "_FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(reporting, "_TIMEOUT_S", 1.0 if "silent" in faults else 30.0)
    with caplog.at_level(logging.WARNING), listening(there, sock, faults) as app:
        run, _ = finished(tmp_path, monkeypatch, sock, token)
    assert app.asked > len(faults)
    assert_told(there, tmp_path, run)
    rows = Ingest(there.engine).rows("observations")
    assert len(rows) == len({row.client_id for row in rows})
    assert len([w for w in warnings(caplog) if "told later" in w]) == 1


def test_a_monitor_that_is_away_costs_two_lines_and_is_told_afterwards(tmp_path, monkeypatch, there, token, caplog):
    monkeypatch.setattr(reporting, "_FIRST_WAIT_S", 0.01)
    with socket.socket() as bound, Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as here:
        bound.bind(("127.0.0.1", 0))  # nobody listens there
        with caplog.at_level(logging.WARNING):
            run, settings = finished(tmp_path, monkeypatch, bound, token)
        later, rest = warnings(caplog)
        assert "is told later" in later and rest.endswith(f"later: cuarl monitor send {run.name}")
        assert run.status == "success" and there.runs() == []
        with pytest.raises(StoreError, match="does not take the reports"):
            send_rest(run.path, settings, here.blobs)
        bound.listen()
        with listening(there, bound):
            assert send_rest(run.path, settings, here.blobs) == 1
            assert send_rest(run.path, settings, here.blobs) == 1, "nothing is left"
    assert_told(there, tmp_path, run)


def test_what_the_monitor_refuses_is_left_out_with_one_line(tmp_path, monkeypatch, there, token, sock, caplog):
    with caplog.at_level(logging.WARNING), listening(there, sock, ["", "refused", "", "refused"]):
        run, _ = finished(tmp_path, monkeypatch, sock, token)
    [said] = warnings(caplog)
    assert said.startswith("the monitor refused") and said.endswith('400 {"error": "no"}')
    assert run.status == "success" and there.run("phones~1").status == "completed"


def test_failures_are_told_too(tmp_path, monkeypatch, there, token, sock):
    with listening(there, sock):
        job = Job.of(asked(tmp_path, sock, token))
        learner, _ = unmoved(monkeypatch, job)

        def fail(batch, step):
            raise StoreError("the loss is gone")

        learner.update = fail
        with pytest.raises(StoreError):
            train(job)
    [known] = there.runs()
    assert (known.status, known.message) == ("failed", "the loss is gone")
    assert len(list(there.trajectories())) > 0


def test_a_spool_that_was_cut_off_goes_on_behind_the_torn_line(tmp_path):
    Spool(tmp_path).add(Item("tasks", "a", {"x": 1}))
    with (tmp_path / SPOOL).open("ab") as file:
        file.write(b'{"kind":"tasks","cli')
    spool = Spool(tmp_path)
    assert [item.client_id for _, item in spool.after(0)] == ["a"]
    spool.add(Item("tasks", "b", {}, {"task_id": ("tasks", "a")}), Item("tasks", "c", {}))
    [(_, first), (_, second), (end, last)] = spool.after(0)
    assert [item.client_id for item in (first, second, last)] == ["a", "b", "c"]
    assert second.refs == {"task_id": ("tasks", "a")} and spool.after(end) == []


def test_a_wrong_address_or_no_token_is_told_before_anything_starts(tmp_path):
    settings = Settings.load(runs_dir=tmp_path).model_copy(update={"project_token": None})
    with pytest.raises(ConfigError, match="is no address of a monitor"):
        check_monitor("monitor.example", settings)
    with pytest.raises(MissingSecret) as caught:
        check_monitor("https://monitor.example/x", settings)
    assert caught.value.where == "MONITOR_PROJECT_TOKEN"


def test_without_a_monitor_nothing_is_written(tmp_path, monkeypatch):
    job = Job.of(experiment(tmp_path, **SHORT))
    unmoved(monkeypatch, job)
    run: Run = train(job).run
    assert not [path.name for path in run.path.iterdir() if path.name.startswith("monitor")]
    assert json.loads((run.path / "manifest.json").read_text())["status"] == "success"
