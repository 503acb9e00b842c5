"""What holds for all tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# before anything imports torch, and for the processes that tests start: the models of tests are so small that a second
# thread only takes a processor from the tests that run beside
os.environ.setdefault("OMP_NUM_THREADS", "1")

# the size of a terminal that nobody looks at: pytest-xdist's workers have one, and tables fold to it
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# who runs the tests in the background, as with nohup, has them and what they start ignore these
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


# how long an example takes says how busy the machine is
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Leave what was imported, a million objects, out of the collections to come: each costs half a second
    otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """What a module's tests leave open fails the last of them, and not whichever test runs when it is collected."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def log_to_no_closed_screen() -> Iterator[None]:
    """A command that ran in this process logs to what stood for the screen of its test, and that is closed by now."""
    yield
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if handler.name == "stderr"]:
        root.removeHandler(handler)


@pytest.fixture
def anyio_backend() -> str:
    """The one that is installed; older releases of anyio ask for all that there are."""
    return "asyncio"
