"""The real adb client library, called in threads, with its failures as EnvError.

Every command has a connection of its own, so that a link that drops is restored by the next one. A command that
certainly did not arrive, or that changes nothing, is asked again for a while; any other is never sent twice.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from cuarl.env.picture import cut_png
from cuarl.errors import EnvError, MissingExtra, PrerequisiteError

TIMEOUT_S = 60.0
"""How long a command may take."""
CONNECT_S = 3.0
RECONNECT_S = 20.0
"""How long a device that has dropped off is waited for."""
RETRY_S = 0.2
_MARK = "cuarl-status:"
_TPORT_VERSION = 41
"""Version of the server that is asked for a device by ``tport``."""


class UnknownOutcome(EnvError):
    """The link broke while a command was under way: it may have been carried out or not."""


class _NotSent(Exception):
    """The command did not reach the device."""


def client(host: str = "127.0.0.1", port: int = 5037) -> Any:
    """The server as ``adbutils.AdbClient``; nothing is asked yet. Raises MissingExtra."""
    try:
        from adbutils import AdbClient
    except ModuleNotFoundError as error:
        raise MissingExtra("adb needs adbutils, which is not installed", hint="pip install 'cuarl[android]'") from error
    return AdbClient(host=host, port=port, socket_timeout=TIMEOUT_S)


def serials(adb: Any) -> list[str]:
    """Devices that are ready, in order. Raises PrerequisiteError if no server answers."""
    from adbutils import AdbError

    try:
        _probe(adb)
        return sorted(info.serial for info in adb.list() if info.state == "device")
    except (AdbError, OSError) as error:
        raise PrerequisiteError(
            f"no adb server answers: {error}", where=f"{adb.host}:{adb.port}", hint="adb start-server"
        ) from error


def _probe(adb: Any) -> None:
    """Raise OSError if nobody listens; the library would start a server of its own, and leave it running."""
    socket.create_connection((adb.host, adb.port), CONNECT_S).close()


class Device:
    """One device's shell. ``down_s`` is how long it has not been there so far."""

    def __init__(self, adb: Any, serial: str, *, reconnect_s: float = RECONNECT_S) -> None:
        self._adb, self.serial, self.reconnect_s, self.down_s = adb, serial, reconnect_s, 0.0
        self._version = 0

    @property
    def host(self) -> str:
        """Where the adb server runs."""
        return str(self._adb.host)

    async def shell(self, command: str, *, repeatable: bool = False, more_s: float = 0.0) -> tuple[int, str]:
        """Exit status and output of ``command``, which may take ``more_s`` longer than others.

        ``repeatable`` is for one that changes nothing. Raises EnvError if the device does not answer, which is
        UnknownOutcome where the command may have been carried out.
        """
        data = await self._raw(f"{command}; echo {_MARK}$?", whole=_has_status, repeatable=repeatable, more_s=more_s)
        text, _, status = data.decode("utf-8", "replace").rpartition(_MARK)
        return int(status), text

    async def read(self, command: str) -> tuple[int, str]:
        """``shell`` for a command that changes nothing."""
        return await self.shell(command, repeatable=True)

    async def screencap(self) -> bytes:
        """The screen as PNG, without the warnings that some devices print before and behind it."""
        return cut_png(await self._raw("screencap -p", whole=_has_picture, repeatable=True))

    async def _raw(
        self, command: str, *, whole: Callable[[bytes], bool], repeatable: bool, more_s: float = 0.0
    ) -> bytes:
        from adbutils import AdbError

        since, missed = anyio.current_time(), False
        while True:
            try:
                data = await self._asked(command, TIMEOUT_S + more_s)
                if not whole(data):
                    raise EOFError(f"{command[:80]!r} broke off after {data[-80:]!r}")
            except (_NotSent, AdbError, OSError, EOFError) as error:
                if not isinstance(error, _NotSent) and not repeatable:
                    raise UnknownOutcome(f"device {self.serial} dropped off: {error}", hint="adb devices -l") from error
                if anyio.current_time() - since >= self.reconnect_s:
                    raise EnvError(f"device {self.serial} does not answer: {error}", hint="adb devices -l") from error
                missed = True
                await anyio.sleep(RETRY_S)
            else:
                self.down_s += anyio.current_time() - since if missed else 0.0
                return data

    async def _asked(self, command: str, timeout_s: float) -> bytes:
        with anyio.fail_after(timeout_s + CONNECT_S):
            return bytes(await to_thread.run_sync(partial(self._ask, command, timeout_s), abandon_on_cancel=True))

    def _ask(self, command: str, timeout_s: float) -> bytes:
        connection = self._connection(timeout_s)
        try:
            connection.send_command(f"shell:{command}")
            connection.check_okay()
            return bytes(connection.read_until_close(encoding=None))
        finally:
            connection.close()

    def _connection(self, timeout_s: float) -> Any:
        """A connection to the device, in which nothing has been asked. Raises _NotSent."""
        from adbutils import AdbError

        try:
            _probe(self._adb)
            self._version = self._version or self._adb.server_version()
            connection = self._adb.make_connection(timeout=timeout_s)
        except (AdbError, OSError, EOFError) as error:
            raise _NotSent(str(error)) from error
        try:
            if self._version >= _TPORT_VERSION:
                connection.send_command(f"host:tport:serial:{self.serial}")
                connection.check_okay()
                connection.read_exact(8)  # the number of the transport
            else:
                connection.send_command(f"host:transport:{self.serial}")
                connection.check_okay()
        except (AdbError, OSError, EOFError) as error:
            connection.close()
            raise _NotSent(str(error)) from error
        return connection


def _has_status(data: bytes) -> bool:
    return data.rpartition(_MARK.encode())[2].strip().isdigit()


def _has_picture(data: bytes) -> bool:
    return bool(cut_png(data))
