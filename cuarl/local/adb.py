"""A local adb server whose device is the simulated phone: for tests, and to try ``--env adb`` without a phone.

``cuarl local adb`` listens on 127.0.0.1:5038; point clients at it by ANDROID_ADB_SERVER_PORT=5038. It speaks the host
protocol (four hexadecimal digits of length, then the request) as far as tracking, screenshots and shells go, and
``console`` the lines of an emulator's console as far as snapshots go.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from cuarl.local.adb_phone import FakePhone
from cuarl.web.listen import stop_accepting

VERSION = 41
REQUEST_S = 60.0
"""Longest time that a client may take for its next request."""


class Garbled(Exception):
    """A client speaks another protocol."""


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve(*phones: FakePhone, port: int = 0) -> AsyncIterator[int]:
    """Serve ``phones`` on loopback; yields the port."""
    by_serial = {phone.serial: phone for phone in phones}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _talk(reader, writer, by_serial)

    async with _listening(talk, port) as bound:
        yield bound


@asynccontextmanager
async def console(phone: FakePhone, token: str) -> AsyncIterator[int]:
    """The console of an emulator, which asks for ``token`` first; yields the port."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known = False
        writer.write(b"Android Console: Authentication required\nOK\n")
        while line := (await _within(reader.readline())).decode(errors="replace").strip():
            match line.split():
                case ["auth", given]:
                    known = given == token
                    writer.write(b"OK\n" if known else b"KO: authentication token does not match\n")
                case ["avd", "snapshot", "load", name] if known:
                    writer.write(b"OK\n" if await phone.load(name) else f"KO: no snapshot {name}\n".encode())
                case _:
                    break

    async with _listening(talk, 0) as bound:
        yield bound


@asynccontextmanager
async def _listening(talk: Handler, port: int) -> AsyncIterator[int]:
    """A server on loopback that leaves no connection behind; yields its port."""
    talking: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, Garbled):
                await talk(reader, writer)
        finally:
            await _close(writer)
            del talking[writer]

    # no coroutine: one that is cancelled before it begins would leave its connection open
    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking[writer] = asyncio.create_task(converse(reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await stop_accepting(server)
        server.close()
        tasks = list(talking.values())
        for writer, task in talking.items():
            writer.transport.abort()  # a client that does not read would hold back what is still to be sent
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in talking:
            await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    # in a task of its own: whoever is cancelled within wait_closed cancels it for those who wait later, too
    await asyncio.shield(_closed(writer))


async def _closed(writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        await writer.wait_closed()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, phones: Mapping[str, FakePhone]) -> None:
    phone: FakePhone | None = None
    while True:
        request = await _request(reader)
        if request == "host:version":
            writer.write(b"OKAY" + _block(f"{VERSION:04x}"))
        elif request in ("host:devices", "host:devices-l"):
            here = [phone.serial for phone in phones.values() if not phone.gone]
            writer.write(b"OKAY" + _block("".join(f"{serial}\tdevice\n" for serial in here)))
        elif request.startswith(("host-serial:", "host-transport-id:")) and request.endswith(":features"):
            writer.write(b"OKAY" + _block(""))  # none: shells are asked for in the plainest way
        elif request.startswith(("host:tport:serial:", "host:transport:")):
            phone = _lent(phones, request)
            if phone is None:
                writer.write(b"FAIL" + _block("device not found"))
                return await writer.drain()
            writer.write(b"OKAY" + (bytes(8) if "tport" in request else b""))
            await writer.drain()
            continue
        elif request.startswith(("shell:", "exec:")) and phone is not None:
            writer.write(b"OKAY")
            output = await phone.run(request.partition(":")[2])
            if phone.drop_next:
                phone.drop_next -= 1
                return None
            writer.write(output)
        else:
            writer.write(b"FAIL" + _block(f"unknown request {request[:60]}"))
        return await writer.drain()


async def _request(reader: asyncio.StreamReader) -> str:
    """The next request. Raises Garbled, TimeoutError."""
    size = await _within(reader.readexactly(4))
    if not re.fullmatch(rb"[0-9a-fA-F]{4}", size):
        raise Garbled
    # what is no text is no command either
    return (await _within(reader.readexactly(int(size, 16)))).decode(errors="replace")


async def _within(reading: Awaitable[bytes]) -> bytes:
    """What a client sends, if it sends it in time and in lines that end. Raises TimeoutError, Garbled."""
    try:
        async with asyncio.timeout(REQUEST_S):
            return await reading
    except ValueError as error:  # a line without end
        raise Garbled from error


def _lent(phones: Mapping[str, FakePhone], request: str) -> FakePhone | None:
    prefix = "host:tport:serial:" if "tport" in request else "host:transport:"
    phone = phones.get(request.removeprefix(prefix))
    return None if phone is None or phone.gone else phone


def _block(text: str) -> bytes:
    return f"{len(text):04x}{text}".encode()
