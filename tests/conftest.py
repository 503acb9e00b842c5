"""What holds for all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# before anything imports torch, and for the processes that tests start: the models of tests are so small that a second
# thread only takes a processor from the tests that run beside
os.environ.setdefault("OMP_NUM_THREADS", "1")

# the size of a terminal that nobody looks at: pytest-xdist's workers have one, and tables fold to it
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)


# how long an example takes says how busy the machine is
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Leave what was imported, a million objects, out of the collections to come: each costs half a second otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """What a module's tests leave open fails the last of them, and not whichever test runs when it is collected."""
    yield
    gc.collect()
