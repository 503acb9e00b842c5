import json

import pytest

from cuarl.terminal.state import STATE
from cuarl.terminal.watcher import TerminalWatcher
from cuarl.workflow.watcher import SILENT


def told(watcher):
    watcher.note("careful")
    watcher.event("plan", {"model": "tiny", "tasks": "2 for training"})
    watcher.metrics(3, {"reward/mean": 0.5})
    watcher.event("halted", {"step": 3, "path": "runs/a"})
    watcher.close()


def test_people_read_lines_on_standard_error(capsys):
    told(TerminalWatcher())
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[:3] == ["careful", "model       tiny", "tasks       2 for training"]
    assert "reward" in err and "runs/a" in err


def test_programs_read_json_lines_on_standard_output(capsys):
    told(TerminalWatcher(json=True))
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["event"] for line in lines] == ["plan", "metrics", "halted"]
    assert lines[1] == {"event": "metrics", "step": 3, "reward/mean": 0.5} and err == "careful\n"


def test_a_part_of_a_run_is_no_line_of_its_own_in_a_pipe(capsys):
    with TerminalWatcher().progress("step 1", 4, part=True) as part, TerminalWatcher().progress("all", 4) as whole:
        assert part is None and whole is not None
    with TerminalWatcher(json=True).progress("step 1", 4, part=True) as told_to_programs:
        assert told_to_programs is not None


def test_silence(capsys):
    told(SILENT)
    with SILENT.progress("all", 4) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("json_lines", [False, True])
def test_quiet_means_no_notes(capsys, json_lines):
    STATE.quiet = True
    TerminalWatcher(json=json_lines).note("careful")
    assert capsys.readouterr() == ("", "")
