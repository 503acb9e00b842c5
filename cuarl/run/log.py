"""The log file of a run, whose trouble is a warning and never the run's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuarl.safe_text import SafeFormatter

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

logger = logging.getLogger(__name__)


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Inside, what is logged goes into the log at ``path``, too, whose run is over."""
    log = RunLog(path)
    logging.getLogger().addHandler(log)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(log)
        log.close()


class RunLog(logging.FileHandler):
    """Writes into ``path``. What can't be written, for instance where the disk is full, is said once on the screen."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self.setFormatter(SafeFormatter(LOG_FORMAT))
        self._failed = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Instead of a traceback for each record."""
        if self._failed:
            return
        self._failed = True
        logger.warning("the log can't be written, and the run goes on without it: %s", self.baseFilename)

    def close(self) -> None:
        """Close, whatever is still to be written."""
        try:
            super().close()
        except OSError:
            self._failed = True
