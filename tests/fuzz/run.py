"""Asking: each request on a connection of its own, its answer judged, and counted by what became of it."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.requests import Request

ANSWER_S = 30.0
AFRESH = 25
"""After so many requests something new is there to be asked for, since the requests also end things."""


@dataclass
class Table:
    """What became of the requests to one server."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def asked(self) -> int:
        return sum(self.counts.values())

    def row(self) -> str:
        shown = [
            self.asked,
            *(self.counts[kind] for kind in ("2xx", "3xx", "4xx", "5xx", "left", "closed")),
            len(self.faults),
        ]
        return f"{self.name:<12}" + "".join(f"{number:>9}" for number in shown) + f"{self.took_s:>9.0f}"


HEAD = f"{'server':<12}" + "".join(
    f"{name:>9}" for name in ("requests", "2xx", "3xx", "4xx", "5xx", "left", "closed", "faults", "seconds")
)


def fuzz(target: Any, count: int, *, draws: int = 0) -> Table:
    """Ask ``target`` (of ``servers``) ``count`` times; ``draws`` seeds what is asked."""
    table, begin = Table(target.name), time.monotonic()
    with target.running() as (url, names), _complaints() as logged:

        @seed(draws)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(target.requests())
        def ask(request: Any) -> None:
            if table.asked % AFRESH == 0:
                target.prepare(url)
            kind, fault = target.judged(url, request, names())
            table.counts[kind] += 1
            fault = fault or (f"logged: {logged.pop()}" if logged else "")
            if fault:
                table.faults.append(f"{request!r:.700}\n    {fault}")

        ask()
        table.faults += target.after(url, count)
        table.faults += [f"logged: {one}" for one in logged]
    table.took_s = time.monotonic() - begin
    return table


def judged(url: str, request: Request, allowed: frozenset[int], texts: tuple[bytes, ...]) -> tuple[str, str]:
    """What became of a request, and what is wrong with that."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=ANSWER_S) as connection:
        try:
            connection.sendall(request.data)
            if request.leaves:
                return "left", ""
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except (ConnectionError, TimeoutError) as error:
            return (
                ("closed", "") if isinstance(error, ConnectionError) else ("closed", f"no answer within {ANSWER_S:g} s")
            )
    while answer.startswith(b"HTTP/1.1 100 "):
        answer = answer.partition(b"\r\n\r\n")[2]
    return _read(answer, request, allowed, texts)


def _read(answer: bytes, request: Request, allowed: frozenset[int], texts: tuple[bytes, ...]) -> tuple[str, str]:
    if not answer:
        return "closed", ""
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        return "closed", f"no answer of HTTP: {answer[:100]!r}"
    status = int(words[1])
    kind = f"{status // 100}xx"
    if status >= 500 and status not in allowed:
        return kind, f"status {status}: {body[:300]!r}"
    if b"Traceback" in body:
        return kind, f"a traceback: {body[:300]!r}"
    if status >= 400 and not body.startswith(texts) and not request.head and not _is_object(head, body):
        return kind, f"status {status} is no JSON object: {head[:200]!r} {body[:200]!r}"
    return kind, ""


def _is_object(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head.lower():
        body = body.partition(b"\r\n")[2].rpartition(b"\r\n0\r\n")[0]
    try:
        return isinstance(json.loads(body), dict) and b"content-type: application/json" in head.lower()
    except ValueError:
        return False


class _Complaints(logging.Handler):
    """What a server says of itself that only its own faults should make it say."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        self.said.append(f"{record.getMessage()} {trace[-1500:]}")


@contextmanager
def _complaints() -> Iterator[list[str]]:
    heard = _Complaints()
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio", "cuarl")]
    before = [(one, one.level, one.propagate) for one in loggers]
    for one in loggers:
        one.addHandler(heard)
        one.setLevel(logging.ERROR)
        one.propagate = False
    try:
        yield heard.said
    finally:
        for one, level, propagate in before:
            one.removeHandler(heard)
            one.setLevel(level)
            one.propagate = propagate
