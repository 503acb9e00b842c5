import json

import pytest

from cuarl import safe_text
from cuarl.monitor.jsonl import JsonLinesSink, parse_lines


@pytest.fixture
def sink(tmp_path):
    sinks = []

    def open_sink(**arguments):
        sinks.append(
            JsonLinesSink(tmp_path / "metrics.jsonl", tmp_path / "events.jsonl", clock=lambda: 5.0, **arguments)
        )
        return sinks[-1]

    yield open_sink
    for one in sinks:
        one.close()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_record_is_one_line_at_once(sink, tmp_path):
    one = sink()
    one.metrics(3, {"reward/mean": 0.5, "policy/loss": float("nan")})
    one.event("checkpoint", {"path": tmp_path / "x", "note": "two\nlines"})
    assert lines(tmp_path / "metrics.jsonl") == [{"step": 3, "time": 5.0, "reward/mean": 0.5, "policy/loss": None}]
    assert lines(tmp_path / "events.jsonl") == [
        {"event": "checkpoint", "time": 5.0, "path": str(tmp_path / "x"), "note": "two\nlines"}
    ]


def test_secrets_in_events_are_masked(sink, tmp_path, monkeypatch):
    monkeypatch.setattr(safe_text, "_secrets", set())
    safe_text.remember(["canary-1a2b3c"])
    sink().event("failure", {"error": {"text": ["key canary-1a2b3c refused"]}})
    assert lines(tmp_path / "events.jsonl")[0]["error"]["text"] == ["key ***3c refused"]


def test_a_torn_last_line_is_dropped_before_more_is_written(sink, tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "rew')
    sink().metrics(2, {})
    assert [record["step"] for record in lines(tmp_path / "metrics.jsonl")] == [1, 2]


def test_resuming_moves_later_steps_aside(sink, tmp_path):
    for step in range(5):
        sink().metrics(step, {"reward/mean": step / 10})
    before = (tmp_path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    sink(resume_step=2).metrics(3, {"reward/mean": 9.0})
    after = (tmp_path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    assert after[:3] == before[:3]
    assert [record["step"] for record in lines(tmp_path / "metrics.jsonl")] == [0, 1, 2, 3]
    assert [record["step"] for record in lines(tmp_path / "metrics.superseded.jsonl")] == [3, 4]


def test_resuming_at_the_end_moves_nothing(sink, tmp_path):
    sink().metrics(1, {})
    sink(resume_step=1)
    assert not (tmp_path / "metrics.superseded.jsonl").exists()


def test_lines_that_hold_no_object_are_left_out():
    assert parse_lines([b'{"a": 1}', b"", b"[1]", b"{", b"\xff\xfe", b'{"b": 2}\r']) == [{"a": 1}, {"b": 2}]
