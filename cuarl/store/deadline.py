"""How long a PostgreSQL server may keep somebody waiting: one that accepts and stays silent must not hold up a run.

Neither keep-alives nor the server's own limits help against a server that is paused, or a pooler that has none to give:
the network is fine, and only this side can stop waiting. The driver looks at its connection ten times a second; that is
when the deadline is looked at, too.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

LONGEST_S = 300.0
"""Bound of one statement where nobody has set another: reading a whole store takes a while."""
_CONNECT_S = 10
_LEAST_CONNECT_S = 2
"""libpq takes no less."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


@contextmanager
def answered_within(seconds: float) -> Iterator[None]:
    """Inside, a server must have answered all that it is asked ``seconds`` from now; else its link is cut."""
    before = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(before)


@cache
def connection_class() -> Any:
    """Psycopg's connection, which raises OperationalError and closes itself when a deadline passes. Needs psycopg."""
    from psycopg import Connection, OperationalError

    class BoundedConnection(Connection[Any]):
        """Gives up on a server that doesn't answer."""

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            """Wait for the server, as all that the driver does is done."""
            return super().wait(self._bounded(gen), *args, **options)

        def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            begun, limit = time.monotonic(), _remaining()
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if time.monotonic() - begun > limit:
                        self.close()
                        raise OperationalError(f"the server has not answered for {limit:.0f} s")
                    wanted = gen.send(ready)
            except StopIteration as done:
                return done.value

    return BoundedConnection


def connect(*args: Any, **options: Any) -> Any:
    """A connection for SQLAlchemy's engine, made within the deadline."""
    options["connect_timeout"] = max(_LEAST_CONNECT_S, int(min(_CONNECT_S, _remaining())))
    return connection_class().connect(*args, **options)


def _remaining() -> float:
    end = _deadline.get()
    return LONGEST_S if end is None else max(0.0, end - time.monotonic())
