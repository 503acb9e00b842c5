import json
import os
from contextlib import closing
from types import SimpleNamespace

import pytest

from cuarl.config.load import resolve
from cuarl.errors import ConfigError
from cuarl.monitor.follow import LONGEST_LINE, Follower
from cuarl.monitor.lines import chosen, number
from cuarl.monitor.tail import await_run, parse_since, tail
from cuarl.run import Run


def append(path, *records):
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.jsonl"


@pytest.fixture
def follower(path):
    with closing(Follower(path)) as follower:
        yield follower


def test_a_file_that_is_not_there_yet_is_waited_for(path, follower):
    assert follower.poll() == []
    append(path, {"step": 1})
    assert follower.poll() == [{"step": 1}]
    assert follower.poll() == []


def test_a_line_counts_once_it_has_its_end(path, follower):
    path.write_bytes('{"a": "é'.encode()[:-1])
    assert follower.poll() == []
    with path.open("ab") as file:
        file.write(b'\xa9"}\n{"a": 2')
    assert follower.poll() == [{"a": "é"}]


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(path, follower):
    append(path, {"step": 1})
    follower.poll()
    append(path, {"step": 2})
    path.rename(path.with_suffix(".1"))
    append(path, {"step": 3})
    assert follower.poll() == [{"step": 2}, {"step": 3}]
    append(path, {"step": 4})
    assert follower.poll() == [{"step": 4}]


def test_a_rotated_file_without_a_successor_is_kept(path, follower):
    append(path, {"step": 1})
    follower.poll()
    path.unlink()
    assert follower.poll() == []
    append(path, {"step": 2})
    assert follower.poll() == [{"step": 2}]


def test_a_cut_file_is_begun_anew(path, follower):
    append(path, {"step": 1}, {"step": 2})
    follower.poll()
    os.truncate(path, 0)
    assert follower.poll() == []
    append(path, {"step": 9})
    assert follower.poll() == [{"step": 9}]


def test_a_line_without_end_does_not_fill_the_memory(path, follower):
    path.write_bytes(b"x" * (LONGEST_LINE + 1))
    follower.poll()
    assert follower._rest == b""


@pytest.fixture
def run(tmp_path):
    return SimpleNamespace(
        metrics_path=tmp_path / "metrics.jsonl", events_path=tmp_path / "events.jsonl", status="running"
    )


def test_metrics_and_events_come_in_the_order_of_their_times(run):
    append(run.metrics_path, {"step": 1, "time": 1.0, "a": 1}, {"step": 2, "time": 3.0, "a": 2})
    append(run.events_path, {"event": "checkpoint", "time": 2.0, "step": 1})
    entries = list(tail(run, follow=False))
    assert [(entry.step, entry.event) for entry in entries] == [(1, None), (1, "checkpoint"), (2, None)]
    assert entries[0].values == {"a": 1}


@pytest.mark.parametrize("status", ["success", "failed", "cancelled", "killed"])
def test_following_ends_when_the_run_does_with_nothing_missed(run, status):
    append(run.metrics_path, {"step": 1, "time": 1.0})
    naps = []

    def sleep(seconds):
        naps.append(seconds)
        append(run.metrics_path, {"step": 1 + len(naps), "time": 1.0 + len(naps)})
        if len(naps) == 2:
            run.status = status

    assert [entry.step for entry in tail(run, sleep=sleep)] == [1, 2, 3]
    assert len(naps) == 2


def test_a_run_that_is_made_later_is_waited_for_and_one_that_goes_on_counts_too(tmp_path):
    runs = [Run.create(tmp_path, resolve(), name=name, kind="train") for name in ("a", "b")]
    with runs[0]:
        pass

    def goes_on(seconds):
        naps.append(seconds)
        runs[1].__enter__() if len(naps) == 2 else None

    naps = []
    assert await_run(tmp_path, sleep=goes_on).name == "b" and len(naps) == 2
    runs[1].__exit__(None, None, None)
    assert (
        await_run(tmp_path, sleep=lambda seconds: Run.create(tmp_path, resolve(), name="c", kind="train")).name == "c"
    )


def test_odd_records_do_not_stop_a_tail(run):
    append(run.metrics_path, {"time": "x", "step": "y"}, {"time": 2, "step": 2})
    assert [(entry.time, entry.step) for entry in tail(run, follow=False)] == [(0.0, None), (2.0, 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, (0, 0)), ("30s", (970, 0)), ("1.5m", (910, 0)), ("12", (0, 12)), ("1970-01-01T00:00:05+00:00", (5, 0))],
)
def test_since_takes_durations_steps_and_times(text, expected):
    assert parse_since(text, 1000.0) == expected


@pytest.mark.parametrize("text", ["soon", "10 m", "-5", ""])
def test_since_refuses_the_rest(text):
    with pytest.raises(ConfigError, match="as a time"):
        parse_since(text, 0.0)


def test_globs_choose_in_their_own_order():
    assert chosen(["a/x", "b", "a/y"], ["b", "a/*", "a/x"]) == ["b", "a/x", "a/y"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.123456, "0.1235"),
        (123456.0, "1.23e+05"),
        (float("inf"), "inf"),
        (3, "3"),
        (None, "-"),
        ("x", "x"),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text
