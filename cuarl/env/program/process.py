"""One run of an agent program: started, waited for, and ended with all that it has started."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

import anyio
from anyio.abc import Process

from cuarl.env.leases import Lease, Ledger
from cuarl.env.processes import MARK, without_secrets
from cuarl.env.program.lease import KIND, end
from cuarl.errors import EnvError

_TAIL = 1 << 16
"""Bytes of what a program printed that are looked at."""


class Program:
    """A process that was started for an episode. Made by ``start``."""

    def __init__(self, process: Process, lease: Lease, out: IO[bytes], said: IO[bytes]) -> None:
        self._process, self._lease, self._out, self._said = process, lease, out, said

    @classmethod
    async def start(cls, ledger: Ledger, command: Sequence[str], told: Mapping[str, str]) -> Program:
        """Start ``command``, noted on the ledger first; ``told`` goes into its environment. Raises EnvError."""
        mark = f"{os.getpid()}-{secrets.token_hex(6)}"
        lease = ledger.hold(KIND, mark, {"program": command[0]})
        out, said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        environment = {**without_secrets(), **told, MARK: mark}
        try:
            with anyio.CancelScope(shield=True):  # a process must not be started and lost
                process = await anyio.open_process(
                    list(command), stdin=None, stdout=out, stderr=said, env=environment, start_new_session=True
                )
        except OSError as error:
            out.close()
            said.close()
            lease.release()
            raise EnvError(f"the agent program can't be started: {error.strerror}", where=command[0]) from error
        return cls(process, lease, out, said)

    async def wait(self) -> int:
        """Its exit status, once it has ended."""
        return await self._process.wait()

    def last_line(self) -> str:
        """The last line that it printed that is not blank; empty if there is none."""
        return _last_line(self._out)

    def last_words(self) -> str:
        """The last line of its standard error, or of what it printed."""
        return _last_line(self._said) or self.last_line()

    async def end(self) -> None:
        """End it and whatever it has started, and strike it from the ledger."""
        with anyio.CancelScope(shield=True):
            await end(self._lease)
            await self._process.aclose()
        self._out.close()
        self._said.close()
        self._lease.release()


def _last_line(file: IO[bytes]) -> str:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _TAIL))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
