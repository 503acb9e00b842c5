"""accelerate's launcher, as ``python -m cuarl.train.launcher ARGUMENTS``: it passes signals on, and is quiet.

By itself torch's agent answers a signal with a traceback, kills its processes after 30 s, and leaves a folder of empty
logs behind. Here it passes signals on and waits; processes print their own errors, so that the agent's are left out.
Whether all processes live, those of other machines included, is watched beside it (``heartbeat``).
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from cuarl.train.heartbeat import Heartbeat
from cuarl.train.launch import LAUNCHED_HERE
from cuarl.train.nodes import WAIT_S, Node, interface_to
from cuarl.train.rendezvous import quieted
from cuarl.train.watch import INTERRUPTED, note_start

# torch's agent would take over the signals that it knows of; this one nobody sends to training
_LEFT_TO_TORCH = {"PET_SIGNALS_TO_HANDLE": "SIGQUIT"}


def main(arguments: Sequence[str]) -> int:
    """Start the processes that ``arguments`` of ``accelerate launch`` name; their exit code when all have ended.

    Before these may stand ``--run FOLDER``, the run that other machines are told of, and ``--wait SECONDS`` for them.
    """
    if "--same_network" in arguments:  # several machines
        quieted(os.environ)
    from accelerate.commands.launch import launch_command_parser

    own = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    own.add_argument("--run", type=Path)
    own.add_argument("--wait", type=float, default=WAIT_S)
    count = 4 if arguments[:1] == ["--run"] else 0
    mine = own.parse_args(arguments[:count])
    note_start(os.environ)
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="cuarl-launch-") as folder:
        note = Path(folder) / "lost"
        os.environ.update(_LEFT_TO_TORCH | {LAUNCHED_HERE: str(note)})
        asked = launch_command_parser().parse_args(["--log_dir", folder, *arguments[count:]])
        node = _node(asked)
        if node.count > 1 and (interface := interface_to(node)) is not None:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        processes = (asked.num_processes or 1) // node.count
        heartbeat = Heartbeat(node, note, processes=processes, run=mine.run, wait_s=mine.wait)
        _pass_signals_on(heartbeat)
        heartbeat.start()
        code = _launched(asked, heartbeat)
        heartbeat.close(code)
    return code


def _node(asked: argparse.Namespace) -> Node:
    return Node(
        int(asked.machine_rank or 0), asked.num_machines or 1, asked.main_process_ip or "", asked.main_process_port or 0
    )


def _launched(asked: argparse.Namespace, heartbeat: Heartbeat) -> int:
    from accelerate.commands.launch import launch_command
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    try:
        launch_command(asked)
    except ChildFailedError as error:
        return _exit_code(error.failures, heartbeat.lost)
    except subprocess.CalledProcessError as error:  # where accelerate needs no agent
        return error.returncode
    except (ValueError, ConnectionError, DistError) as error:  # what it says of its configuration, or of other nodes
        if heartbeat.lost is None:
            sys.stderr.write(f"error: {error}\n".replace("\n", " ").rstrip() + "\n")
        return 2 if isinstance(error, ValueError) else 1
    return 0


def _pass_signals_on(heartbeat: Heartbeat) -> None:
    def pass_on(number: int, frame: FrameType | None) -> None:
        import psutil

        heartbeat.told_to_end()
        for child in psutil.Process().children():
            child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        signal.signal(number, pass_on)


def _exit_code(failures: dict[int, Any], lost: str | None) -> int:
    """That of the first process that failed; all that were interrupted count as one that was.

    ``lost`` has been told by the first process here, unless that is the one that was ended.
    """
    for rank, failure in sorted(failures.items()):
        if failure.exitcode < 0 and (lost is None or failure.local_rank == 0):
            name = signal.Signals(-failure.exitcode).name
            sys.stderr.write(f"error: {lost or f'process {rank} of the run was ended by {name}'}\n")
    codes = [f.exitcode for f in sorted(failures.values(), key=lambda f: f.timestamp) if f.exitcode != INTERRUPTED]
    return max(codes[0], 1) if codes else INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
