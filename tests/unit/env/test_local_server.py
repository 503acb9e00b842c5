"""Servers that end while somebody connects leave nothing open: no socket is left to the collector."""

import asyncio
import gc
import socket
import warnings

import pytest

from cuarl.local.adb import serve
from cuarl.local.adb_phone import FakePhone


@pytest.mark.parametrize("rounds", range(6))
def test_a_connection_is_closed_however_far_it_has_come_when_its_server_ends(rounds):
    async def connect():
        async with serve(FakePhone("one")) as port:
            client = socket.create_connection(("127.0.0.1", port))
            for _ in range(rounds):  # of the event loop: from not accepted yet to being talked to
                await asyncio.sleep(0)
        return client

    gc.collect()
    with warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always")
        with asyncio.run(connect()):
            pass
        gc.collect()
    assert [str(leak.message) for leak in leaks] == []
