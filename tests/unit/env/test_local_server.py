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


class Talkative(FakePhone):
    async def run(self, command):
        return bytes(32 << 20)


def test_a_server_ends_while_a_client_does_not_read_the_answer_that_ends_its_connection():
    def request(text):
        return f"{len(text):04x}{text}".encode()

    async def connect():
        async with serve(Talkative("one")) as port:
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(request("host:transport:one") + request("exec:screencap"))
            await asyncio.to_thread(client.recv, 4)
            await asyncio.sleep(0.1)  # all is written, and its connection waits to be closed
        return client

    with asyncio.run(asyncio.wait_for(connect(), 10)):
        pass


def test_an_app_that_was_stopped_is_among_the_recent_ones_and_opens_where_it_begins():
    async def played():
        phone = FakePhone("one", clutter=0.0)
        settings = "com.android.settings"
        for command in ("start -n", "force-stop"):
            await phone.run(f"am {command} {settings}")
        ended = [await phone.run(f"input keyevent {code}; echo $?") for code in (187, 3)]
        await phone.run(f"am start -n {settings}")
        return ended, (await phone.sim()).world.ui

    ended, ui = asyncio.run(played())
    assert ended == [b"0\n", b"0\n"]
    assert ui.page == "settings/main"
