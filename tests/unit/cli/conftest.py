import logging
import sys
import types

import pytest
import typer

from cuarl.cli import app as app_module
from cuarl.cli.help import HelpCommand
from cuarl.cli.lazy import Entry
from cuarl.terminal.state import STATE, State


@pytest.fixture(autouse=True)
def bare_terminal(monkeypatch, tmp_path):
    """A pipe, no variables that change the output, an empty folder to work in, and the state put back."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CUARL_LOG_LEVEL", "CUARL_RUNS_DIR", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.chdir(tmp_path)
    loggers = [logging.getLogger(name) for name in (None, "cuarl", "stamina")]
    root, levels = loggers[0], [logger.level for logger in loggers]
    handlers = list(root.handlers)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    logging.captureWarnings(False)
    for name in State.__slots__:
        setattr(STATE, name, getattr(State(), name))


@pytest.fixture
def add_command(monkeypatch):
    """Adds a command to the root that runs a function, through the lazy loading that all commands go through."""

    def add(name, function):
        module = types.ModuleType(f"fake_{name}")
        module.app = typer.Typer()
        module.app.command(cls=HelpCommand)(function)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        entries = {**app_module.Commands.entries, name: Entry(module.__name__, "For a test.")}
        monkeypatch.setattr(app_module.Commands, "entries", entries)

    return add
