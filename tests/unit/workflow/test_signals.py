"""Signals of a process of its own: heard where the work may be cut, and never in what tears it down."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

WORK = """
import signal, sys, time
import anyio
from cuarl.workflow import signals

signals.install()

async def work():
    try:
        print("working", flush=True)
        await anyio.sleep(60)
    finally:
        with anyio.CancelScope(shield=True):
            print("tearing down", flush=True)
            await anyio.sleep(1)
            print("torn down", flush=True)

try:
    signals.run(work)
except KeyboardInterrupt:
    time.sleep(0.5)
    print("interrupted", flush=True)
"""
PLAIN = """
import time
from cuarl.workflow import signals

signals.install()
try:
    try:
        print("working", flush=True)
        time.sleep(60)
    finally:
        print("tearing down", flush=True)
        time.sleep(1)
        print("torn down", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
HELD = """
import time
import anyio
from cuarl.workflow import signals

signals.install()
signals.hold()
print("working", flush=True)
time.sleep(1)
print("torn down", flush=True)

async def more():
    print("more", flush=True)

try:
    signals.run(more)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


ELSEWHERE = """
import signal, subprocess, sys, threading, time
import anyio
from cuarl.workflow import signals

signals.install()

def send():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(60)

threading.Thread(target=send, daemon=True).start()
print("working", flush=True)
"""
AWAITING = (
    ELSEWHERE
    + """
try:
    signals.run(lambda: anyio.sleep(60))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
)
LAUNCHING = (
    ELSEWHERE
    + """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("interrupted" if signals.wait_for(child) == -signal.SIGTERM else "not told", flush=True)
"""
)


def started(code, **options):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **options)


def read_until(process, line):
    while (read := process.stdout.readline()) != f"{line}\n":
        assert read, f"ended before it said {line}"


@pytest.mark.parametrize("code", [WORK, PLAIN], ids=["awaiting", "not awaiting"])
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_work_and_others_do_not_break_into_its_end(code, first):
    with started(code) as process:
        read_until(process, "working")
        process.send_signal(first)
        read_until(process, "tearing down")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
            time.sleep(0.05)
        assert process.stdout.read().splitlines() == ["torn down", "interrupted"]
    assert process.returncode == 0


def test_a_signal_while_the_end_is_written_is_heard_before_anything_else_is_begun():
    with started(HELD) as process:
        read_until(process, "working")
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read().splitlines() == ["torn down", "interrupted"]


@pytest.mark.parametrize("code", [AWAITING, LAUNCHING], ids=["awaiting", "a child"])
def test_a_signal_that_interrupts_no_wait_is_heard(code):
    """As one that another thread gets; one that comes in the moment before the wait begins can't be made."""
    with started(code) as process:
        read_until(process, "working")
        assert process.communicate(timeout=20)[0] == "interrupted\n"


def test_what_a_shell_told_a_process_to_ignore_stays_ignored():
    with started(PLAIN, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        read_until(process, "working")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read().splitlines()[-1] == "interrupted"


def test_a_terminal_that_hangs_up_takes_nothing_with_it(tmp_path):
    mine, theirs = pty.openpty()
    done = tmp_path / "done"
    code = WORK.replace("time.sleep(0.5)", f"open({str(done)!r}, 'w').close()")
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # so that it becomes its terminal
    )
    os.close(theirs)
    assert b"working" in os.read(mine, 100)
    os.close(mine)
    assert process.wait(timeout=60) == 0
    assert done.exists()
