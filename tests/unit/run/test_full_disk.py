"""Where the disk of the runs is full: one line that names the place, and a manifest that says how it ended."""

import json
import logging
from pathlib import Path

import pytest

from cuarl.config.load import resolve
from cuarl.monitor.jsonl import JsonLinesSink
from cuarl.run import Run
from cuarl.run.atomic import write_text
from cuarl.run.log import RunLog
from cuarl.run.manifest import read_manifest
from tests.small_disk import fill, small_disk


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", "600k") as folder:
        yield folder


def test_a_run_says_how_it_ended_though_the_disk_is_full(disk, capfd):
    run = Run.create(disk, resolve(flags={"tasks": ["settings"]}), name="a")
    with pytest.raises(OSError, match="No space left") as caught, run:
        fill(disk)
        logging.getLogger("cuarl.test").error("%s", "x" * 20_000)
        run.count({"episodes": 1})
    assert caught.value.filename == str(run.path / "manifest.json")
    manifest = read_manifest(run.path)
    assert (manifest.status, manifest.attempts[-1].status, manifest.exit_code) == ("failed", "failed", 1)
    assert "Logging error" not in capfd.readouterr().err
    (disk / "filling").unlink()
    with run:
        assert Run(run.path).status == "running"
    assert not (run.path / ".reserve").exists()


def test_a_run_that_finds_no_room_is_not_begun_and_leaves_its_name_free(disk):
    filling = fill(disk)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            Run.create(disk, resolve(flags={"tasks": ["settings"]}), name="a")
    filling.unlink()
    Run.create(disk, resolve(flags={"tasks": ["settings"]}), name="a")


def test_a_log_that_cannot_be_written_is_told_once_and_stops_nothing(caplog, capfd):
    log = RunLog(Path("/dev/full"))
    logger = logging.getLogger("cuarl.test")
    logger.addHandler(log)
    try:
        for number in range(3):
            logger.warning("record %d", number)
    finally:
        logger.removeHandler(log)
        log.close()
    assert caplog.text.count("the log can't be written, and the run goes on without it: /dev/full") == 1
    assert "Logging error" not in capfd.readouterr().err


def test_a_write_that_fails_names_the_file(disk):
    fill(disk)
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(disk / "a.json", "x" * 10_000)
    assert caught.value.filename == str(disk / "a.json") and not list(disk.glob(".a*"))


def test_lines_that_find_the_disk_full_are_written_when_there_is_room(disk, caplog):
    sink = JsonLinesSink(disk / "metrics.jsonl", disk / "events.jsonl")
    sink.metrics(1, {"reward/mean": 0.1})
    filling = fill(disk)
    for step in range(2, 60):
        sink.metrics(step, {f"reward/{'x' * 100}": 0.1})
    assert caplog.text.count("can't be written now") == 1 and str(disk) in caplog.text
    filling.unlink()
    sink.metrics(60, {})
    sink.close()
    rows = [json.loads(line) for line in (disk / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 61))


def test_lines_that_never_find_room_are_counted_by_file(disk):
    sink = JsonLinesSink(disk / "metrics.jsonl", disk / "events.jsonl")
    fill(disk)
    for step in range(3):
        sink.metrics(step, {"x" * 10_000: 0.1})
    with pytest.raises(OSError, match="3 lines are lost") as caught:
        sink.close()
    assert caught.value.filename == str(disk / "metrics.jsonl")
