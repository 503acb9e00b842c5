"""The processes of one desktop: display server, session bus, window manager, applications.

On record from first to last.

All of them carry a mark in their environment, so that what an application started in turn is found too, and all run as
the user ``nobody`` where cuarl itself is root: a terminal on the desktop is a shell of that user.
"""

from __future__ import annotations

import os
import pwd
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from cuarl.env.leases import SWEEPERS, Lease, Ledger
from cuarl.env.linux.home import Home
from cuarl.env.linux.programs import APPS, BUS, SERVER, WINDOW_MANAGER
from cuarl.env.processes import end_marked
from cuarl.errors import EnvError
from cuarl.run.owner import process_start
from cuarl.settings import Settings

KIND = "display"
PREFIX = "cuarl-desktop-"
START_S = 20.0
"""How long a display server may take; a machine that is starting many at once is slow."""
LOCKS = Path("/tmp")  # where X servers put them, whatever TMPDIR says
LOG_TAIL = 1500


class Session:
    """One desktop's processes and folder. ``start`` may be called once, ``close`` at any time."""

    def __init__(self, ledger: Ledger, size: tuple[int, int]) -> None:
        self.size, self._ledger = size, ledger
        self.mark = secrets.token_hex(8)
        self.home = Home(Path(tempfile.gettempdir()).resolve() / f"{PREFIX}{self.mark}")
        self.display = ""
        self._lease: Lease | None = None
        self._children: list[subprocess.Popen[bytes]] = []

    async def start(self, seed: int, preset: Mapping[str, Any]) -> None:
        """Bring up display, bus and window manager. Raises EnvError, and TaskError for a preset that can't be."""
        self._lease = self._ledger.hold(KIND, self.mark, {"folder": str(self.home.folder)})
        # not abandoned when cancelled: what it starts must be known when the session is closed
        await to_thread.run_sync(self._start, seed, preset)
        self._lease.note(display=self.display)

    async def launch(self, command: str) -> str:
        """Start an application: a known one by its name (with arguments), or any command. Gives the program's name."""
        words = shlex.split(command)
        if not words:
            raise EnvError("an application without a name can't be started")
        known = APPS.get(words[0])
        await to_thread.run_sync(self._spawn, [*(known.command if known else words[:1]), *words[1:]])
        return words[0]

    def check(self) -> None:
        """Raise EnvError if a process that the desktop can't do without has gone."""
        for child, name in zip(self._children, (SERVER, BUS, WINDOW_MANAGER), strict=False):
            if child.poll() is not None:
                raise EnvError(f"{name} of display {self.display} has gone ({_end(child.returncode)}){self._said()}")

    async def close(self) -> None:
        """End every process, delete the folder, strike the session from the ledger. Raises EnvError if that fails."""
        if self._lease is None:
            return
        await end_desktop(self.mark, self.home.folder, self.display)
        for child in self._children:
            child.wait(START_S)  # ended: this only collects its remains
        self._lease.release()
        self._lease = None

    def _start(self, seed: int, preset: Mapping[str, Any]) -> None:
        self.home.create(seed, preset)
        if user := _other_user():
            self.home.give_to(*user)
        self._start_server()
        self._spawn([BUS, "--nofork", "--nopidfile", f"--config-file={self.home.run}/bus.conf"])
        self._spawn([WINDOW_MANAGER])
        self._wait_for_bus()

    def _start_server(self) -> None:
        """The server itself chooses a free number and tells it, so that displays started at once don't collide."""
        width, height = self.size
        reading, writing = os.pipe()
        try:
            options = ["-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp", "-noreset", "-dpi", "96"]
            self._spawn([SERVER, "-displayfd", str(writing), *options], pass_fds=(writing,))
            os.close(writing)
            writing = -1
            number = _line(reading, START_S)
        finally:
            os.close(reading)
            if writing >= 0:
                os.close(writing)
        if not number:
            raise EnvError(f"{SERVER} did not come up within {START_S:g} s{self._said()}")
        self.display = f":{number}"

    def _wait_for_bus(self) -> None:
        end = time.monotonic() + START_S
        while not (self.home.run / "bus").exists():
            self.check()
            if time.monotonic() > end:
                raise EnvError(f"{BUS} did not come up within {START_S:g} s{self._said()}")
            time.sleep(0.005)

    def _spawn(self, command: Sequence[str], pass_fds: tuple[int, ...] = ()) -> None:
        user = _other_user()
        with (self.home.folder / "log").open("ab") as log:
            try:
                child = subprocess.Popen(
                    list(command),
                    env=self.home.environment(self.mark, self.display),
                    cwd=self.home.path,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=pass_fds,
                    user=user[0] if user else None,
                    group=user[1] if user else None,
                    extra_groups=[] if user else None,
                )
            except OSError as error:
                raise EnvError(f"can't start {command[0]}: {error.strerror}") from error
        self._children.append(child)

    def _said(self) -> str:
        try:
            text = (self.home.folder / "log").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""
        return f"; the last it said: {text[-LOG_TAIL:]}" if text else ""


def _line(reading: int, timeout_s: float) -> str:
    """A line from a pipe, whole (the server writes it in pieces, and stops if nobody listens); empty if none comes."""
    end, text = time.monotonic() + timeout_s, b""
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(reading, 16) if ready else b""
        if not piece:
            return ""
        text += piece
    return text.decode().strip()


async def end_desktop(mark: str, folder: Path, display: str) -> None:
    """End what belongs to a desktop, and delete its folder. Raises EnvError if something could not be ended."""
    left = await end_marked(mark, grace_s=0.5)
    if left:
        raise EnvError(f"processes {left} of display {display or mark} can't be ended")
    if folder.name == f"{PREFIX}{mark}":  # a ledger that somebody edited must not delete anything else
        await to_thread.run_sync(_delete, folder)
    if display.removeprefix(":").isdecimal():
        _unlock(display.removeprefix(":"))


async def sweep_display(lease: Lease, settings: Settings) -> None:
    """End the desktop of a lease."""
    await end_desktop(lease.id, Path(lease.detail.get("folder", "")), lease.detail.get("display", ""))


SWEEPERS[KIND] = sweep_display


def _delete(folder: Path) -> None:
    for _ in range(3):  # a process that was just killed may have made a file in the meantime
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)
    raise EnvError("can't delete the folder of a desktop", where=str(folder))


def _unlock(number: str) -> None:
    """Remove what a killed server leaves in the way of the next one, unless another has taken the number."""
    lock = LOCKS / f".X{number}-lock"
    try:
        if not _holds(int(lock.read_text()), lock.stat().st_mtime):
            lock.unlink()
            (LOCKS / ".X11-unix" / f"X{number}").unlink(missing_ok=True)
    except (OSError, ValueError):
        return


def _holds(pid: int, since: float) -> bool:
    """Whether the process that wrote its id into a lock at ``since`` lives; another may have been given the id."""
    import psutil

    try:
        # the system counts in hundredths of a second, and the lock is written a moment after the start
        return process_start(pid) is not None and psutil.Process(pid).create_time() <= since + 1
    except psutil.Error:
        return False


def _other_user() -> tuple[int, int] | None:
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        return None
    return nobody.pw_uid, nobody.pw_gid


def _end(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
