"""Thousands of requests to every server that no client should make: ``make proofs`` prints the table."""

from __future__ import annotations

import pytest

from tests.fuzz.run import HEAD, fuzz
from tests.fuzz.servers import TARGETS


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_no_request_of_thousands_is_the_servers_fault(name: str) -> None:
    if name == "tinker":
        pytest.importorskip("tinker", reason="the extra tinker is not installed")
    table = fuzz(TARGETS[name](), 3000)
    print(f"\n{HEAD}\n{table.row()}")
    assert not table.faults, "\n".join(table.faults[:5])
