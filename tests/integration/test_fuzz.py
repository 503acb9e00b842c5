"""A few dozen requests to every server that no client should make; ``python -m tests.fuzz 3000`` makes many."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the servers need the extra web")

from tests.fuzz.run import fuzz
from tests.fuzz.servers import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_no_request_is_the_servers_fault(name: str) -> None:
    if name == "serve-env":
        pytest.importorskip("websockets", reason="the extra openenv is not installed")
    if name == "tinker":
        pytest.importorskip("tinker", reason="the extra tinker is not installed")
    table = fuzz(TARGETS[name](), 40)
    assert table.asked >= 40 and not table.faults, "\n".join(table.faults[:5])
    assert table.counts["4xx"] >= 5, "most of them are wrong"
