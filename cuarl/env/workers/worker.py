"""One worker process: a Python of its own that answers one request after the other."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from cuarl.env.leases import Lease, Ledger
from cuarl.env.processes import MARK, without_secrets
from cuarl.env.workers.frames import Refused, pack, picture_length
from cuarl.env.workers.lease import KIND, end
from cuarl.errors import EnvError

LONGEST_LINE = 16 * 2**20
CLOSE_S = 2.0


class Worker:
    """A process that runs ``module`` and answers requests, one at a time. Made by ``start``."""

    def __init__(self, process: Process, lease: Lease, said: IO[bytes]) -> None:
        self._process, self._lease, self._said = process, lease, said
        assert process.stdout is not None
        self._replies = BufferedByteReceiveStream(process.stdout)
        self.usable = True
        """False once a request was abandoned or the process has died: then it can only be ended."""

    @classmethod
    async def start(cls, ledger: Ledger, module: str) -> Worker:
        """Start a process, noted on the ledger first. Raises EnvError."""
        mark = f"{os.getpid()}-{secrets.token_hex(6)}"
        lease = ledger.hold(KIND, mark, {"program": module})
        said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        try:
            with anyio.CancelScope(shield=True):  # a process must not be started and lost
                process = await anyio.open_process(
                    [sys.executable, "-m", module], stderr=said, env=_environment(mark), start_new_session=True
                )
        except OSError as error:
            said.close()
            lease.release()
            raise EnvError(f"a worker can't be started: {error.strerror}", where=sys.executable) from error
        return cls(process, lease, said)

    async def call(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """The reply to a request, and its picture. Raises Refused, and EnvError if the process has died."""
        if not self.usable:
            raise EnvError("this worker was abandoned in the middle of a request, or has died")
        self.usable = False  # until the reply is here: whoever is cancelled meanwhile leaves it out of step
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send(pack(request))
            line = await self._replies.receive_until(b"\n", LONGEST_LINE)
            reply = json.loads(line)
            picture = await self._replies.receive_exactly(picture_length(reply))
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, OSError) as error:
            raise EnvError(f"the environment's process has died{self._last_words()}") from error
        self.usable = True
        if "refused" in reply:
            raise Refused(reply["refused"])
        return reply, picture

    def forget(self) -> None:
        """Drop what the process has said so far, which would pile up over many episodes."""
        self._said.seek(0)  # the process writes on from here: both sides share one position
        self._said.truncate()

    async def end(self) -> None:
        """End the process and whatever it has started, and strike it from the ledger. Safe to call twice."""
        self.usable = False
        with anyio.CancelScope(shield=True):
            if self._process.stdin is not None:
                await self._process.stdin.aclose()
            with anyio.move_on_after(CLOSE_S):  # at the end of its input it goes by itself
                await self._process.wait()
            await end(self._lease)
            await self._process.aclose()
        self._said.close()
        self._lease.release()

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f", saying at last: {lines[-1].strip()}" if lines else ""


def _environment(mark: str) -> dict[str, str]:
    kept = without_secrets()
    path = os.pathsep.join([str(Path.cwd()), *filter(None, [kept.get("PYTHONPATH")])])
    # games that draw into memory must not look for a screen
    return {"SDL_VIDEODRIVER": "dummy", "OMP_NUM_THREADS": "1", **kept, "PYTHONPATH": path, MARK: mark}
