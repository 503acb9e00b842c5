"""A server that is kept for as long as who started it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KEEPER = [sys.executable, "-m", "cuarl.policy.remote.keeper"]
SERVER = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)']); \
print(p.pid, flush=True); time.sleep(99)"
"""Starts another process, as servers do, and tells its id."""
HOLDER = f"import subprocess, sys, time; p = subprocess.Popen({[*KEEPER, sys.executable, '-c', SERVER]!r}, \
stdin=subprocess.PIPE); print(p.pid, flush=True); time.sleep(99)"


def gone(pid):
    """Whether a process ends within a while; one that nobody waits for is as good as ended."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="tells processes apart by /proc")


def test_the_server_and_what_it_started_end_with_the_pipe():
    pipe = subprocess.PIPE
    keeper = subprocess.Popen([*KEEPER, sys.executable, "-c", SERVER], stdin=pipe, stdout=pipe)
    started = int(keeper.stdout.readline())
    # Ctrl-C is for who holds it
    keeper.send_signal(signal.SIGINT)
    assert keeper.poll() is None
    keeper.stdin.close()
    assert keeper.wait(30) == 0
    assert gone(started)
    keeper.stdout.close()


def test_it_ends_when_its_holder_is_killed():
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE)
    keeper, started = (int(holder.stdout.readline()) for _ in range(2))
    holder.kill()
    holder.wait()
    assert gone(started)
    assert gone(keeper)
    holder.stdout.close()


def test_a_server_that_ends_by_itself_gives_its_code():
    keeper = subprocess.Popen([*KEEPER, sys.executable, "-c", "raise SystemExit(7)"], stdin=subprocess.PIPE)
    assert keeper.wait(30) == 7
    keeper.stdin.close()
