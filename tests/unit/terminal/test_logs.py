"""What a person was told stands in the run's log, and is not told twice."""

import logging

import pytest

from cuarl.run.log import RunLog, logged
from cuarl.terminal.logs import configure, forget
from cuarl.terminal.output import note, screen


@pytest.fixture(autouse=True)
def undone():
    root, cuarl = logging.getLogger(), logging.getLogger("cuarl")
    before, levels = list(root.handlers), (root.level, cuarl.level)
    yield
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
    screen.handlers.clear()
    root.setLevel(levels[0])
    cuarl.setLevel(levels[1])
    logging.captureWarnings(False)


@pytest.mark.parametrize("level", ["warning", "debug"])
def test_the_log_of_a_run_has_what_was_said_before_it_and_during_it_once(tmp_path, capsys, level):
    forget()
    configure(level)
    note("before")
    log = RunLog(tmp_path / "run.log")
    logging.getLogger().addHandler(log)
    note("during")
    logging.getLogger().removeHandler(log)
    log.close()
    note("between")
    with logged(tmp_path / "run.log"):
        note("after")
    said = [line.rpartition(": ")[2] for line in (tmp_path / "run.log").read_text().splitlines()]
    assert said == ["before", "during", "between", "after"]
    assert capsys.readouterr().err.splitlines() == ["before", "during", "between", "after"]
