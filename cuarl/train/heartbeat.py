"""Whether all of a run's processes live, as the launcher of each node sees it, and the end of its own if one doesn't.

A launcher waits for each process that it has started, and tells the other nodes when one ends badly. It shows once a
second that it lives; node 0 listens to all, the others to node 0. Whoever is not heard of for ``STALE_S`` is gone: a
machine without power or network says nothing. Processes are told by a file (``train.watch``), which names what is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.errors import CuarlError
from cuarl.run.atomic import write_text
from cuarl.train import rendezvous
from cuarl.train.nodes import Node
from cuarl.train.watch import INTERRUPTED, LONGEST_END_S

if TYPE_CHECKING:
    from torch.distributed import TCPStore

STALE_S = 20.0
_BEAT_S, _LINGER_S = 1.0, 3.0


class Heartbeat:
    """Watches over the processes of a run for the launcher of one node."""

    def __init__(self, node: Node, note: Path, *, processes: int, run: Path | None, wait_s: float) -> None:
        """``note`` is the file in which this node's processes are told what is gone."""
        self._node, self._note, self._processes, self._run, self._wait_s = node, note, processes, run, wait_s
        self.lost: str | None = None
        self.asked = False
        """Whether somebody told this node to end."""
        self._store: TCPStore | None = None
        self._last = {rank: time.monotonic() for rank in range(node.count)}
        self._beats: dict[int, tuple[int, str]] = {}
        self._lock, self._over = threading.Lock(), threading.Event()

    def start(self) -> None:
        """Begin, in threads of its own."""
        self._thread(self._wait_for_children)
        if self._node.count > 1:
            self._thread(self._talk)
            self._thread(self._listen)

    def _thread(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="cuarl-heartbeat", daemon=True).start()

    # --- own processes ---------------------------------------------------------------------------------------------

    def _wait_for_children(self) -> None:
        import psutil

        known: set[int] = set()
        while len(known) < self._processes and not self._over.is_set():
            for child in psutil.Process().children():
                try:
                    rank = None if child.pid in known else child.environ().get("RANK")
                except psutil.Error:
                    continue
                if rank is not None:
                    known.add(child.pid)
                    self._thread(lambda pid=child.pid, rank=rank: self._wait_for(pid, rank))  # type: ignore[misc]
            time.sleep(0.2)

    def _wait_for(self, pid: int, rank: str) -> None:
        """Until a process has ended, which is left for torch's agent to clear away."""
        try:
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # cleared away already; the agent knows how it ended
            return
        if found is None or (found.si_code == os.CLD_EXITED and found.si_status in (0, INTERRUPTED)):
            return
        by_signal = found.si_code != os.CLD_EXITED
        how = f"was ended by {signal.Signals(found.si_status).name}" if by_signal else f"exit code {found.si_status}"
        where = f", on node {self._node.rank} ({socket.gethostname()})," if self._node.count > 1 else ""
        self.gone(f"process {rank} of the run{where} {how if by_signal else f'ended with {how}'}")

    # --- other nodes -----------------------------------------------------------------------------------------------

    def _talk(self) -> None:
        """Tell and hear, once a second, as long as node 0 answers."""
        try:
            store = self._store = rendezvous.connect(self._node, self._wait_s)
            if self._node.rank == 0 and self._run is not None:
                rendezvous.offer(store, self._node, self._processes, self._run)
            number = 0
            while not self._over.is_set():
                number += 1
                rendezvous.beat(store, self._node, number)
                self._hear(store)
                time.sleep(_BEAT_S)
        except CuarlError as error:
            self.gone(error.what)
        except RuntimeError:  # of torch's store: whoever listens will find it silent
            return

    def _hear(self, store: TCPStore) -> None:
        for rank in range(self._node.count) if self._node.rank == 0 else (0,):
            beat = rendezvous.heard(store, rank)
            if beat is not None and beat != self._beats.get(rank):
                self._beats[rank], self._last[rank] = beat, time.monotonic()
        what = rendezvous.ended(store)
        if what is not None:
            self.gone(what, tell=False)

    def _listen(self) -> None:
        began = time.monotonic()
        while not self._over.wait(_BEAT_S):
            if self._node.rank == 0 and len(self._beats) < self._node.count:
                if time.monotonic() - began > self._wait_s:
                    absent = ", ".join(str(r) for r in range(self._node.count) if r not in self._beats)
                    self.gone(f"node {absent} did not come to {self._node.place} within {self._wait_s:g} s")
                continue
            silent = self._silent(STALE_S)
            if silent is not None:
                self.gone(f"{silent} has not been heard of for {STALE_S:g} s")

    def _silent(self, seconds: float) -> str | None:
        """A node that has come and was not heard of for so long."""
        now = time.monotonic()
        for rank, (_, host) in self._beats.items():
            if now - self._last[rank] > seconds:
                return f"node {rank} ({host}, of {self._node.place})" if rank == 0 else f"node {rank} ({host})"
        return None

    # --- the end ---------------------------------------------------------------------------------------------------

    def gone(self, what: str, *, tell: bool = True) -> None:
        """Something is gone: tell it to the other nodes and to this one's processes, and see that these end."""
        with self._lock:
            if self.lost is not None or self._over.is_set():
                return
            self.lost = what
        write_text(self._note, what + "\n")
        self._thread(self._end)
        if tell and (store := self._store) is not None:  # which may never answer, if node 0 is what is gone
            self._thread(lambda: rendezvous.tell_ended(store, what))

    def _end(self) -> None:
        """Processes end by themselves; those that can't are ended, and so is a launcher that waits for nobody."""
        import psutil

        waits = time.monotonic() + LONGEST_END_S + _LINGER_S
        while (children := psutil.Process().children()) and time.monotonic() < waits:
            time.sleep(0.2)
        for child in children:
            child.kill()
        if not self._over.wait(_LINGER_S):
            sys.stderr.write(f"error: {self.lost}\n")
            sys.stderr.flush()
            os._exit(1)

    def close(self, code: int) -> None:
        """The launcher's work is over, with an exit code."""
        if self.lost is None and code not in (0, INTERRUPTED):
            self.gone(f"node {self._node.rank} ({socket.gethostname()}) ended with exit code {code}")
        if code == INTERRUPTED and self._node.count > 1 and not self.asked and self.lost is None:
            self._say_who_ended_it()
        self._over.set()
        if code != 0 and self._node.count > 1:
            time.sleep(_LINGER_S)  # what is told is told here

    def _say_who_ended_it(self) -> None:
        for _ in range(6):
            who = self._store and rendezvous.told(self._store)
            silent = self._silent(3 * _BEAT_S)
            if who or silent:
                sys.stderr.write(f"training was ended from {who}\n" if who else f"the launcher of {silent} is gone\n")
                return
            time.sleep(_BEAT_S)

    def told_to_end(self) -> None:
        """Somebody told this node to end. May be called by a signal handler."""
        self.asked = True
        if self._store is not None:
            self._thread(self._tell_told)

    def _tell_told(self) -> None:
        if self._store is not None:
            rendezvous.tell_told(self._store, f"node {self._node.rank} ({socket.gethostname()})")
