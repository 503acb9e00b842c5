import json
import sys

import pytest

from cuarl.cli.app import run
from cuarl.config.load import resolve
from cuarl.monitor.jsonl import JsonLinesSink
from cuarl.run import Run, facts
from cuarl.run.manifest import Code, Machine


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A finished run with three steps and a checkpoint."""
    monkeypatch.setattr(facts, "code", lambda: Code(version="1"))
    monkeypatch.setattr(facts, "machine", lambda: Machine(python="3", platform="x", cpus=1))
    times = iter([1.0, 2.0, 3.0, 4.0])
    with Run.create(tmp_path / "runs", resolve(), name="alpha") as made:
        sink = JsonLinesSink(made.metrics_path, made.events_path, clock=lambda: next(times))
        sink.metrics(1, {"reward/mean": 0.25, "tokens/total": 7.0})
        sink.metrics(2, {"reward/mean": 0.5, "tokens/total": 8.0})
        sink.event("halted", {"step": 2, "path": "evil\x1b[2J"})
        sink.metrics(3, {"reward/mean": 0.75})
        sink.close()
    return made


def test_the_newest_run_is_printed_as_plain_lines(finished, capsys):
    assert run(["monitor", "tail"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "step 1  reward 0.25",
        "step 2  reward 0.50",
        "halted  step=2  path=evil\\x1b[2J",
        "step 3  reward 0.75",
    ]
    assert "alpha is success" in err


def test_since_and_metric_narrow_it_down(finished, capsys):
    run(["monitor", "tail", "al", "--since", "2", "--metric", "tokens/*", "--metric", "reward/mean"])
    assert capsys.readouterr().out.splitlines() == [
        "step 2  tokens/total 8  reward/mean 0.5",
        "step 3  reward/mean 0.75",
    ]


def test_json_passes_the_records_on(finished, capsys):
    run(["monitor", "tail", "--json"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record.get("event", record["step"]) for record in records] == [1, 2, "halted", 3]
    run(["monitor", "tail", "--json", "--metric", "tokens/total"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records == [{"step": 1, "time": 1.0, "tokens/total": 7.0}, {"step": 2, "time": 2.0, "tokens/total": 8.0}]


def test_a_terminal_gets_the_same_lines(finished, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    run(["monitor", "tail", "alpha"])
    assert "step 1  reward 0.25\n" in capsys.readouterr().out
    monkeypatch.delenv("NO_COLOR")
    run(["monitor", "tail", "alpha"])
    out = capsys.readouterr().out
    assert "step 1  reward 0.25" in out and "\x1b[2J" not in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--metric", "reward/meen"], 'did you mean "reward/mean"?'),
        (["beta"], 'there is no run "beta"'),
        (["--since", "soon"], "as a time"),
    ],
)
def test_what_can_never_match_is_an_error_at_once(finished, capsys, args, message):
    assert run(["monitor", "tail", *args]) == 2
    assert message in capsys.readouterr().err


def test_without_runs_it_says_how_to_make_one(capsys):
    assert run(["monitor", "tail"]) == 2
    assert "there are no runs yet" in capsys.readouterr().err


def test_reading_changes_nothing(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.path.rglob("*")}
    run(["monitor", "tail"])
    assert {path: path.stat().st_mtime_ns for path in finished.path.rglob("*")} == before
