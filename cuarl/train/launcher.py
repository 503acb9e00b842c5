"""accelerate's launcher, as ``python -m cuarl.train.launcher ARGUMENTS``: it passes signals on, and is quiet.

By itself torch's agent answers a signal with a traceback, kills its processes after 30 s, and leaves a folder of empty
logs behind. Here it passes signals on and waits; processes print their own errors, so that the agent's are left out.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import FrameType
from typing import Any

from cuarl.train.watch import INTERRUPTED, note_start

# torch's agent would take over the signals that it knows of; this one nobody sends to training
_LEFT_TO_TORCH = {"PET_SIGNALS_TO_HANDLE": "SIGQUIT"}


def main(arguments: Sequence[str]) -> int:
    """Start the processes that ``arguments`` of ``accelerate launch`` name; their exit code when all have ended."""
    from accelerate.commands.launch import launch_command, launch_command_parser
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.update(_LEFT_TO_TORCH)
    note_start(os.environ)
    logging.disable(logging.ERROR)
    for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        signal.signal(number, _pass_on)
    with tempfile.TemporaryDirectory(prefix="cuarl-launch-") as logs:
        try:
            launch_command(launch_command_parser().parse_args(["--log_dir", logs, *arguments]))
        except ChildFailedError as error:
            return _exit_code(error.failures)
        except subprocess.CalledProcessError as error:  # where accelerate needs no agent
            return error.returncode
    return 0


def _pass_on(number: int, frame: FrameType | None) -> None:
    import psutil

    for child in psutil.Process().children():
        child.send_signal(number)


def _exit_code(failures: dict[int, Any]) -> int:
    """That of the first process that failed; all that were interrupted count as one that was."""
    for rank, failure in sorted(failures.items()):
        if failure.exitcode < 0:
            name = signal.Signals(-failure.exitcode).name
            sys.stderr.write(f"error: process {rank} of the run was ended by {name}\n")
    codes = [f.exitcode for f in sorted(failures.values(), key=lambda f: f.timestamp) if f.exitcode != INTERRUPTED]
    return max(codes[0], 1) if codes else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
