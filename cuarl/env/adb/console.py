"""The console of an Android emulator, by which snapshots are loaded.

Lines over TCP, at the port in the serial number.
"""

from __future__ import annotations

import re
from pathlib import Path

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from cuarl.errors import EnvError

ANSWER_S = 60.0
"""A snapshot of a large emulator takes its time."""
TOKEN_FILE = ".emulator_console_auth_token"
_SERIAL = re.compile(r"emulator-(\d+)")
_LIMIT = 65536


async def load_snapshot(host: str, serial: str, name: str, *, token_file: Path | None = None) -> None:
    """Put the emulator back to a snapshot. Raises EnvError if it is no emulator, does not answer, or has no such one.

    ``token_file`` holds the word that the console asks for; None is where the emulator writes it, in the home folder.
    """
    found = _SERIAL.fullmatch(serial)
    if found is None:
        raise EnvError(f"{serial} is no emulator, so it has no snapshots", hint="reset: home")
    try:
        with anyio.fail_after(ANSWER_S):
            stream = await anyio.connect_tcp(host, int(found[1]))
            async with stream:
                lines = BufferedByteReceiveStream(stream)
                if "Authentication required" in await _answer(lines):
                    token = (token_file or Path.home() / TOKEN_FILE).read_text(encoding="utf-8").strip()
                    await stream.send(f"auth {token}\n".encode())
                    await _answer(lines)
                await stream.send(f"avd snapshot load {name}\n".encode())
                await _answer(lines)
                await stream.send(b"quit\n")
    except (OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound) as error:
        raise EnvError(f"the console of {serial} failed: {error or type(error).__name__}") from error


async def _answer(lines: BufferedByteReceiveStream) -> str:
    """What the console says up to its OK. Raises EnvError for its KO."""
    said: list[str] = []
    while True:
        line = (await lines.receive_until(b"\n", _LIMIT)).decode("utf-8", "replace").strip()
        if line == "OK":
            return "\n".join(said)
        if line.startswith("KO"):
            raise EnvError(f"the emulator refuses: {line.removeprefix('KO').lstrip(': ')}")
        said.append(line)
