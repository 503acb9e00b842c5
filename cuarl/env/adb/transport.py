"""The real adb client library, called in threads, with its failures as EnvError."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from cuarl.errors import EnvError, MissingExtra, PrerequisiteError

TIMEOUT_S = 30.0
_MARK = "cuarl-status:"


def client(host: str | None = None, port: int | None = None) -> Any:
    """The server as ``adbutils.AdbClient``; None for what ANDROID_ADB_SERVER_HOST and _PORT say. Raises MissingExtra."""
    try:
        from adbutils import AdbClient
    except ModuleNotFoundError as error:
        raise MissingExtra("adb needs adbutils, which is not installed", hint="pip install 'cuarl[android]'") from error
    return AdbClient(host=host, port=port, socket_timeout=TIMEOUT_S)


def serials(adb: Any) -> list[str]:
    """Devices that are ready, in order. Raises PrerequisiteError if there is none, or no server."""
    from adbutils import AdbError

    try:
        found = sorted(info.serial for info in adb.list() if info.state == "device")
    except (AdbError, OSError) as error:
        raise PrerequisiteError(f"no adb server answers: {error}", hint="adb start-server") from error
    if not found:
        raise PrerequisiteError("adb sees no device that is ready", hint="adb devices -l")
    return found


class Device:
    """One device's shell."""

    def __init__(self, adb: Any, serial: str) -> None:
        self._adb, self.serial = adb, serial

    async def shell(self, command: str) -> tuple[int, str]:
        """Exit status and output of ``command``. Raises EnvError if the device does not answer."""
        output = (await self._raw(f"{command}; echo {_MARK}$?")).decode("utf-8", "replace")
        text, mark, status = output.rpartition(_MARK)
        if not mark or not status.strip().isdigit():
            raise EnvError(f"device {self.serial} broke off during {command[:80]!r}", hint="adb devices -l")
        return int(status), text

    async def screencap(self) -> bytes:
        """The screen as PNG."""
        return await self._raw("screencap -p")

    async def _raw(self, command: str) -> bytes:
        device = self._adb.device(self.serial)
        return bytes(await self._call(partial(device.shell, command, encoding=None, timeout=TIMEOUT_S)))

    async def _call(self, work: Callable[[], Any]) -> Any:
        from adbutils import AdbError

        try:
            with anyio.fail_after(TIMEOUT_S + 5):
                return await to_thread.run_sync(work, abandon_on_cancel=True)
        except (AdbError, OSError) as error:
            raise EnvError(f"device {self.serial} does not answer: {error}", hint="adb devices -l") from error
