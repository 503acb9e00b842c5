"""What holds for all tests."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator

import psutil
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


WORKER_BYTES = 3 << 29
"""What one worker and the processes of its tests take at most, as measured: 1.5 GB."""

# how long an example takes says how busy the machine is; other examples are drawn at every run, and `make proofs` tries
# twenty times as many
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("patient", max_examples=25, **PATIENT)
settings.register_profile("thorough", max_examples=500, **PATIENT)
settings.load_profile("patient")


def pytest_xdist_auto_num_workers() -> int:
    """Two workers to a processor, since tests wait as long as they compute, and no more than there is memory for."""
    return max(1, min(2 * (os.cpu_count() or 1), psutil.virtual_memory().available // WORKER_BYTES))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let every worker begin with its share of the long tests, or the others wait at the end for the one with the last.

    What is long are the integration tests. Workers are given equal parts of the list, one after the other.
    """
    count = getattr(config, "workerinput", {}).get("workercount", 1)
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    long = [module for name, module in modules.items() if name.startswith("tests/integration")]
    short = [item for name, module in modules.items() if not name.startswith("tests/integration") for item in module]
    ordered = list[pytest.Item]()
    for worker in range(count):
        ordered += [item for module in long[worker::count] for item in module]
        end = (worker + 1) * len(items) // count if worker + 1 < count else len(items)
        room = max(0, end - len(ordered))
        ordered, short = ordered + short[:room], short[room:]
    items[:] = ordered + short


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is imported, a million objects, and leave it out of the collections to come."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """What a module's tests leave open fails the last of them, and not whichever test runs when it is collected.

    What is left was imported or is kept for all modules, so later collections need not look at it either.
    """
    yield
    gc.collect()
    gc.freeze()


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


@pytest.fixture
def two_lanes():
    """Two threads for torch, so that there are lanes (``cuarl.policy.lanes``)."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
