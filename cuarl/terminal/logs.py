"""Logging, set up once at the start of a command: to stderr, with secrets masked and lines bounded.

A run adds its own log file, which keeps everything from ``info`` on whatever stderr shows.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections import deque

from cuarl.errors import ConfigError
from cuarl.run.log import RunLog
from cuarl.safe_text import SafeFormatter
from cuarl.terminal.output import console, is_terminal, screen

_MOST_EARLIER = 100
LEVELS = ("debug", "info", "warning", "error")


class PlainFormatter(SafeFormatter):
    """``warning: text``, as the command's own messages look."""

    def format(self, record: logging.LogRecord) -> str:
        """Format with the level in front, lower case."""
        return f"{record.levelname.lower()}: {super().format(record)}"


class Earlier(logging.Handler):
    """Keeps what the person was told before there was a run, until a run's log is there to take it."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: deque[logging.LogRecord] = deque(maxlen=_MOST_EARLIER)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on what was kept; the record itself comes to the log by itself."""
        log = next((one for one in logging.getLogger().handlers if isinstance(one, RunLog)), None)
        if log is None:
            self._kept.append(record)
        while log is not None and self._kept:
            log.handle(self._kept.popleft())


def forget() -> None:
    """Keep nothing of what was said so far: a command begins."""
    for old in list(screen.handlers):
        screen.removeHandler(old)


def configure(level: str) -> None:
    """Show everything of at least this level on stderr, Python's warnings included. Raises ConfigError for no level."""
    if level.lower() not in LEVELS:
        raise ConfigError(
            f'unknown log level "{level}"', where="--log-level or CUARL_LOG_LEVEL", hint="--log-level info"
        )
    root = logging.getLogger()
    for old in list(root.handlers):
        if getattr(old, "name", None) == "stderr":
            root.removeHandler(old)
    handler = _handler()
    handler.name = "stderr"
    handler.setLevel(level.upper())
    handler.addFilter(lambda record: record.name != screen.name)
    root.addHandler(handler)
    debug, verbose = level.lower() == "debug", level.lower() in ("debug", "info")
    root.setLevel(logging.INFO if debug else logging.WARNING)
    logging.getLogger("cuarl").setLevel(logging.DEBUG if debug else logging.INFO)
    # a service that refuses often is what retries are for; only giving up is news, and that is an error of ours
    logging.getLogger("stamina").setLevel(logging.NOTSET if debug else logging.ERROR)
    if not screen.handlers:
        screen.addHandler(Earlier())
    logging.captureWarnings(True)
    if not verbose and not sys.warnoptions:
        # what a library means to change some day helps its callers' authors, not their users
        warnings.simplefilter("ignore", FutureWarning)


def _handler() -> logging.Handler:
    if not is_terminal(sys.stderr):
        plain = logging.StreamHandler(sys.stderr)
        plain.setFormatter(PlainFormatter("%(message)s"))
        return plain
    from rich.logging import RichHandler

    # shares rich's lines with progress bars, which a plain handler would tear
    handler = RichHandler(console=console(stderr=True), show_path=False, show_time=False)
    handler.setFormatter(SafeFormatter("%(message)s"))
    return handler
