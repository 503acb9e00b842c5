"""The local GBox server on a free port, in a thread of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cuarl.local.faults import Faults
from cuarl.local.gbox import FakeGBox
from cuarl.local.threads import served

KEY = "gbox-marker-6d1f"


@contextmanager
def serving(faults: Faults | None = None, *, stock: bool = False) -> Iterator[tuple[FakeGBox, str]]:
    """The server and its base URL."""
    fake = FakeGBox(KEY, faults=faults, stock=stock)
    with served(fake.app()) as url:
        yield fake, f"{url}/api/v1"
