"""What trackers are told, read back by their readers where they are installed; and that none of them can end a run."""

import json
import logging
import math
import sys
import threading
from dataclasses import replace

import pytest
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker
from PIL import Image

from cuarl.config.load import resolve
from cuarl.errors import ConfigError, MissingExtra
from cuarl.evaluate.summary import Outcome
from cuarl.settings import Settings
from cuarl.store import Store
from cuarl.types import StopReason
from cuarl.workflow import trackers, tracking
from cuarl.workflow.job import Job
from cuarl.workflow.trackers import check_trackers, markdown
from cuarl.workflow.training import train
from tests.unit.workflow.switch import experiment
from tests.unit.workflow.test_training import SHORT, unmoved

TABLE = "eval/tasks/tasks"


def run(tmp_path, monkeypatch, track, **fields):
    job = Job.of(experiment(tmp_path, **SHORT, track=track, **fields))
    unmoved(monkeypatch, job)
    return train(job).run


def resumed(tmp_path, monkeypatch, run, start, **fields):
    asked = experiment(tmp_path, **SHORT | {"max_steps": 3}, **fields)
    job = Job.of(replace(asked, resume=run.path))
    unmoved(monkeypatch, job, start=start)
    return train(job).run


def stored(tmp_path, run):
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        return [event.data for event in store.events(run=run.run_id, kind="tracker")]


def told(run):
    """The metrics that the run itself has noted, by name, as (step, value)."""
    found = {}
    for line in map(json.loads, run.metrics_path.read_text().splitlines()):
        for name, value in line.items():
            if name not in ("step", "time") and value is not None:
                found.setdefault(name, []).append((line["step"], value))
    return found


# --- real trackers -------------------------------------------------------------------------------------------------


def test_tensorboard_reads_back_what_the_run_has_noted_and_a_resumed_run_goes_on(tmp_path, monkeypatch):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = run(tmp_path, monkeypatch, "tensorboard")
    resumed(tmp_path, monkeypatch, first, 1, track="tensorboard")
    [one, two] = stored(tmp_path, first)
    assert one == two == {"name": "tensorboard", "id": "", "url": str(first.path / "tensorboard")}
    events = accumulator.EventAccumulator(one["url"])
    events.Reload()
    seen = {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}
    expected = told(first)
    assert set(seen) == set(expected) and len(seen) > 10
    for name, points in expected.items():
        assert [step for step, _ in seen[name]] == [step for step, _ in points], name
        assert [value for _, value in seen[name]] == pytest.approx([value for _, value in points], rel=1e-6)
    pictures = [tag for tag in events.Tags()["images"] if tag.startswith("eval/tasks/episodes/0-lamp_")]
    assert pictures and events.Images(pictures[0])[0].height == 480
    [text] = [tag for tag in events.Tags()["tensors"] if tag.startswith(TABLE)]
    shown = events.Tensors(text)[0].tensor_proto.string_val[0].decode()
    assert shown.splitlines()[0].startswith("| task | success | episodes |") and "| lamp_off | 1 | 1 |" in shown


def records_of(folder):
    """The records of a run of wandb, by wandb's own message types: its releases have no reader for Python any more."""
    from wandb.proto.wandb_internal_pb2 import Record

    for path in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        data, at, whole = path.read_bytes(), 7, b""
        while at + 7 <= len(data):
            left = 32768 - at % 32768
            length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
            if left < 7 or kind == 0:
                at += left
                continue
            whole += data[at + 7 : at + 7 + length]
            at += 7 + length
            if kind in (1, 4):  # a whole record, or its last part
                yield path, Record.FromString(whole)
                whole = b""


def test_wandb_keeps_the_run_offline_and_a_resumed_run_has_its_id(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr(tracking, "PATIENCE_S", 120.0)  # it may take longer to start than so short a run
    first = run(tmp_path, monkeypatch, "wandb", track_project="phones")
    resumed(tmp_path, monkeypatch, first, 2, track="wandb", track_project="phones")
    assert stored(tmp_path, first) == [{"name": "wandb", "id": first.run_id, "url": ""}] * 2
    runs, history, config = [], {}, {}
    for path, record in records_of(first.path):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            runs.append((path, record.run.run_id, record.run.project, record.run.display_name))
            config |= {item.key: item.value_json for item in record.run.config.update}
        elif kind == "config":
            config |= {item.key: item.value_json for item in record.config.update}
        elif kind == "history":
            row = {"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
            for name, value in row.items():
                history.setdefault(name, []).append((row["_step"], value))
    assert len({path for path, *_ in runs}) == 2
    assert {tuple(rest) for _, *rest in runs} == {(first.run_id, "phones", first.name)}
    assert json.loads(config["group_size"]) == 2
    for name, points in told(first).items():
        assert history[name] == points, name
    assert history[f"{TABLE}/_type"][0] == (0, "table-file") and history[f"{TABLE}/nrows"][0] == (0, 2)
    assert history["eval/tasks/episodes/_type"][0] == (0, "images/separated")
    assert history["eval/tasks/episodes/count"][0] == (0, 2)
    assert len(list(first.path.glob("wandb/offline-run-*/files/media/images/**/*.png"))) >= 2


# --- trackers that fail --------------------------------------------------------------------------------------------


class Odd(Exception):
    """What a library raises that nobody knows."""


class Noting(GeneralTracker):
    """A tracker of accelerate's kind that notes what it is told, and may fail or hang."""

    name, requires_logging_directory, main_process_only = "noting", False, False
    made = ()
    fail_in = hang_in = ""

    def __init__(self, run_name, **about):
        super().__init__()
        self.about, self.calls, self.threads = {"run_name": run_name, **about}, [], set()
        type(self).made = (*type(self).made, self)

    @property
    def tracker(self):
        return type("Run", (), {"id": "its-own-id", "url": "https://elsewhere/run", "offline": False})

    def _note(self, what, *seen):
        self.threads.add(threading.current_thread().name)
        if self.hang_in == what:
            threading.Event().wait()
        if self.fail_in == what:
            raise Odd(f"no {what}\nmore")
        self.calls.append((what, *seen))

    def start(self):
        self._note("start")

    def store_init_configuration(self, values):
        self._note("config", values)

    def log(self, values, step=None, **more):
        self._note("log", step, values)

    def log_table(self, name, columns=None, data=None, step=None):
        self._note("table", step, name, columns, data)

    def finish(self):
        self._note("finish")


@pytest.fixture
def noting(monkeypatch):
    class Mine(Noting):
        made = ()

    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "wandb", Mine)
    monkeypatch.setattr(trackers, "PACKAGES", {"wandb": "json"})
    return Mine


def test_a_tracker_is_told_everything_once_on_its_own_thread_and_again_by_its_id(tmp_path, monkeypatch, noting):
    first = run(tmp_path, monkeypatch, "wandb,wandb")
    [tracker] = noting.made
    assert tracker.about["run_name"] == "cuarl" and tracker.about["id"] == first.run_id
    assert tracker.threads == {"cuarl-wandb"}
    kinds = [call[0] for call in tracker.calls]
    assert kinds == ["start", "config", "table", "log", "log", "table", "log", "finish"]
    assert tracker.calls[1][1]["group_size"] == 2 and tracker.calls[1][1]["algorithm"] == "grpo"
    assert [call[1] for call in tracker.calls if call[0] == "log"] == [0, 1, 2]
    assert tracker.calls[2][1:3] == (0, TABLE) and [row[:3] for row in tracker.calls[2][4]] == [
        ["lamp_on", 0.0, 1],
        ["lamp_off", 1.0, 1],
    ]
    assert stored(tmp_path, first) == [{"name": "wandb", "id": "its-own-id", "url": "https://elsewhere/run"}]
    resumed(tmp_path, monkeypatch, first, 2, track="wandb")
    again = noting.made[1]
    assert again.about["id"] == "its-own-id" and "config" not in [call[0] for call in again.calls]


@pytest.mark.parametrize("where", ["start", "config", "log", "table", "finish"])
def test_a_tracker_that_fails_costs_one_line_and_not_the_run(tmp_path, monkeypatch, noting, caplog, where):
    noting.fail_in = where
    with caplog.at_level(logging.WARNING):
        done = run(tmp_path, monkeypatch, "wandb")
    assert done.status == "success" and [step for step, _ in told(done)["reward/mean"]] == [1, 2]
    said = [record.getMessage() for record in caplog.records if "the tracker" in record.getMessage()]
    assert said == [f"the tracker wandb failed, and the run goes on without it: Odd: no {where}"]
    lost = {"start": 9, "config": 1, "log": 3, "table": 2, "finish": 1}[where]
    counted = [record.getMessage() for record in caplog.records if "did not take" in record.getMessage()]
    assert counted == [f"wandb did not take {lost} records of the run"]


def test_a_tracker_that_hangs_is_left_behind(tmp_path, monkeypatch, noting, caplog):
    noting.hang_in = "log"
    monkeypatch.setattr(tracking, "PATIENCE_S", 0.05)
    monkeypatch.setattr(tracking, "_MOST_WAITING", 3)
    with caplog.at_level(logging.WARNING):
        done = run(tmp_path, monkeypatch, "wandb")
    assert done.status == "success"
    assert [r.getMessage() for r in caplog.records if "wandb" in r.getMessage()] == [
        "wandb did not take all of the run within 0 s; the rest is lost"
    ]


# --- nothing that was not asked for --------------------------------------------------------------------------------


def test_a_run_without_trackers_loads_nothing_of_them(tmp_path, monkeypatch):
    for module in ("cuarl.workflow.tracking", "cuarl.workflow.trackers", "accelerate.tracking"):
        monkeypatch.setitem(sys.modules, module, None)
    assert run(tmp_path, monkeypatch, ()).status == "success"


def test_a_tracker_that_is_not_installed_is_told_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(trackers, "PACKAGES", {"wandb": "no_such_package", "trackio": "no_such_package"})
    with pytest.raises(MissingExtra) as caught:
        Job.of(experiment(tmp_path, **SHORT, track="wandb"))
    assert caught.value.hint == 'pip install "cuarl[track]"'
    with pytest.raises(MissingExtra) as caught:
        check_trackers(("trackio",))
    assert caught.value.hint == "pip install no_such_package"


def test_a_project_without_a_tracker_that_has_any_is_refused():
    for track in ((), ("tensorboard",)):
        with pytest.raises(ConfigError, match="track_project has no effect with"):
            resolve(flags={"track": track, "track_project": "phones"})


def test_an_unknown_tracker_is_refused_and_several_are_given_with_commas():
    assert resolve(flags={"track": "wandb, tensorboard"}).config.track == ("wandb", "tensorboard")
    with pytest.raises(ConfigError, match="track must be 'wandb'"):
        resolve(flags={"track": "wandbb"})


def test_a_key_of_the_settings_is_where_wandb_looks(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "")
    monkeypatch.delenv("WANDB_API_KEY")
    Settings.load(wandb_api_key="from-a-file").tell_trackers()
    import os

    assert os.environ.pop("WANDB_API_KEY") == "from-a-file"


# --- what is told --------------------------------------------------------------------------------------------------


def outcome(task, success, n=0):
    return Outcome(episode_id=f"{task}.{n}", task_id=task, seed=n, success=success, stop=StopReason.DONE)


def test_the_worst_tasks_stand_first_and_those_without_a_verdict_last():
    rows = tracking.table([outcome("b", True), outcome("lost", None), outcome("a", False), outcome("a", True, 1)])
    assert [row[:3] for row in rows] == [["a", 0.5, 2], ["b", 1.0, 1], ["lost", None, 0]]
    assert markdown(("a", "b"), [["x|y", None], [0.12345, 3]]).splitlines()[2:] == ["| x\\|y | - |", "| 0.123 | 3 |"]


@pytest.mark.parametrize(("good", "bad", "expected"), [(5, 5, (2, 2)), (0, 5, (0, 4)), (5, 1, (3, 1)), (1, 0, (1, 0))])
def test_successes_and_failures_are_shown_each_of_another_task(good, bad, expected):
    outcomes = [outcome(f"g{i}", True) for i in range(good)] + [outcome(f"b{i}", False) for i in range(bad)]
    chosen = tracking.some_of([*outcomes, *(outcome(o.task_id, o.success, 1) for o in outcomes), outcome("x", None)])
    assert (sum(o.success for o in chosen), sum(not o.success for o in chosen)) == expected
    assert len({o.task_id for o in chosen}) == len(chosen)


def test_strips_are_of_one_size_and_long_ones_keep_both_ends():
    shades = [Image.new("RGB", (240, 480), (10 * i, 0, 0)) for i in range(20)]
    long, short = tracking.strips_of([shades, shades[:1]])
    assert long.size == short.size == (12 * 240, 480)
    assert [long.getpixel((240 * i, 0))[0] // 10 for i in range(12)] == [0, 1, 2, 3, 4, 5, 14, 15, 16, 17, 18, 19]
    assert short.getpixel((240, 0)) == (255, 255, 255)
    assert tracking.strips_of([]) == []


def test_what_is_no_number_is_not_told(tmp_path, monkeypatch, noting):
    made = Job.of(experiment(tmp_path, **SHORT, track="wandb"))
    learner, _ = unmoved(monkeypatch, made)
    learner.update = lambda batch, step: {"optim/updates": math.nan, "optim/lr": 0.5}
    train(made)
    logged = [call[2] for call in noting.made[0].calls if call[0] == "log" and call[1] == 1]
    assert logged[0]["optim/lr"] == 0.5 and "optim/updates" not in logged[0]
