"""``cuarl train`` in several processes, on one machine or on several: who makes the run, and who starts what.

The command that a person types makes the run directory (so that processes don't race for it), and starts accelerate's
launcher, whose processes resume the run. On other machines than node 0 the command fetches from there what the run was
started with, and its processes resume a copy of that.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuarl.cli.options import Request
from cuarl.errors import ConfigError, CuarlError
from cuarl.settings import Settings
from cuarl.terminal.output import note
from cuarl.terminal.state import STATE
from cuarl.train.launch import Launch, launch_asked_for, launch_command
from cuarl.train.nodes import check_port_free
from cuarl.train.watch import INTERRUPTED
from cuarl.workflow import episodes as parts
from cuarl.workflow import inputs, signals
from cuarl.workflow.job import Job

if TYPE_CHECKING:
    from cuarl.run import Run

_COPIES = ".nodes"
"""Folder below that of the runs, in which other nodes than node 0 keep what they were sent, as long as they train."""
_LAUNCH = ("processes", "accelerate", "nodes", "node_rank", "rendezvous")


def follows(options: Mapping[str, Any], settings: Settings) -> Path | None:
    """What node 0 sent of the run that is to be trained; None if this is node 0. Raises CuarlError."""
    launch = launch_asked_for(**{name: options.get(name) for name in _LAUNCH})
    if launch.node.rank == 0 or "WORLD_SIZE" in os.environ:
        return None
    from cuarl.train import rendezvous

    wait_s = settings.rendezvous_seconds
    note(f"node {launch.node.rank} of {launch.node.count}: waiting for node 0 at {launch.node.place}")
    store = rendezvous.connect(launch.node, wait_s)
    into = settings.runs_dir / _COPIES / str(launch.node.rank)
    return rendezvous.fetch(store, launch.node, launch.processes, into, wait_s)


@contextmanager
def as_node(launch: Launch, request: Request) -> Iterator[None]:
    """On another node than node 0: node 0 is told of an error, and what it sent is deleted at the end."""
    if launch.node.rank == 0 or request.resume is None or request.dry_run:
        yield
        return
    try:
        _check_same(launch, request)
        yield
    except CuarlError as error:
        from cuarl.train import rendezvous

        told = f"node {launch.node.rank} ({socket.gethostname()}): {error.what}"
        rendezvous.tell_ended(rendezvous.connect(launch.node, 5.0), told)
        raise
    finally:
        shutil.rmtree(request.resume, ignore_errors=True)
        with suppress(OSError):  # of another training
            request.resume.parent.rmdir()
            request.resume.parent.parent.rmdir()


def _check_same(launch: Launch, request: Request) -> None:
    """What is typed on this node may not differ from node 0's configuration."""
    from cuarl.config.load import recorded
    from cuarl.run.resume import differences

    assert request.resume is not None
    wrong = differences(recorded(request.resume / "config.json"), request.config)
    if wrong:
        lines = "\n".join(f"  {field}: {old!r} on node 0, {new!r} here" for field, old, new in wrong)
        raise ConfigError(
            f"node {launch.node.rank} was given another configuration than node 0:\n{lines}",
            hint="the same options on all nodes, or none but --nodes, --node-rank, --rendezvous and --processes",
        )


def is_told_elsewhere(launch: Launch, request: Request) -> bool:
    """Whether what there is to say is said by another process: the main one of those that are started, or were."""
    return (launch.world > 1 and not request.dry_run) or os.environ.get("RANK", "0") != "0"


def check(job: Job, launch: Launch) -> None:
    """Raise ConfigError for what several processes, or machines, can't do."""
    if job.config.trainer.type == "tinker" and launch.world > 1:
        flag = "--processes" if launch.processes > 1 else "--nodes"
        raise ConfigError("Tinker trains elsewhere, so one process is enough", where=flag, hint="leave it out")
    if launch.node.count > 1 and job.config.policy.type == "vllm":
        raise ConfigError(
            "a server that is started for the run is reached from this machine alone",
            where="--nodes, --vllm-python",
            hint="start vllm serve by hand, and name it with --model-base-url",
        )


def launched(request: Request, job: Job, launch: Launch) -> int:
    """Make the run directory, or take the copy of node 0's, and go on with it in all processes; their exit code."""
    launch_command([], processes=launch.processes, accelerate=launch.accelerate)  # a wrong preset is refused first
    if launch.node.rank > 0 and request.resume is not None:
        return _told(signals.wait_for(_started(request, launch, request.resume)))
    if launch.node.count > 1:
        check_port_free(launch.node)
    with parts.open_store(request.settings) as store:
        run = job.experiment.open_run("train", store)
    inputs.keep(run, job.inputs)
    if launch.node.count > 1:
        note(f"node 0 of {launch.node.count}: waiting for the others at {launch.node.place}")
    return _exit_code(run, signals.wait_for(_started(request, launch, run.path)))


def _started(request: Request, launch: Launch, run: Path) -> subprocess.Popen[bytes]:
    options = [("--runs-dir", request.runs_dir), ("--db", request.db), ("--env-file", STATE.env_file)]
    arguments = ["train", "--resume", str(run), "--display", STATE.display]
    arguments += [str(word) for name, value in options if value is not None for word in (name, value)]
    flags = {
        "--json": request.json,
        "--quiet": STATE.quiet,
        "--debug": STATE.debug,
        inputs.OPTION: request.accept_changes,
    }
    arguments += [flag for flag, given in flags.items() if given]
    command = launch_command(
        arguments,
        processes=launch.processes,
        accelerate=launch.accelerate,
        node=launch.node,
        run=run,
        wait_s=request.settings.rendezvous_seconds,
    )
    # in a session of its own, or Ctrl-C would reach each process twice
    return subprocess.Popen(command, start_new_session=True, env={**os.environ, **_reporting(request)})


def _reporting(request: Request) -> dict[str, str]:
    """Where the run is reported, for the processes that make it: a token is not for their command lines."""
    settings, token = request.settings, request.settings.project_token
    found = {
        "MONITOR_BASE_URL": settings.monitor_base_url,
        "MONITOR_PROJECT_ID": settings.project_id,
        "MONITOR_PROJECT_TOKEN": token and token.get_secret_value(),
    }
    return {name: value for name, value in found.items() if value}


def _told(code: int) -> int:
    """The launcher's exit code, where it has one."""
    if code >= 0:
        return code
    note(f"the launcher was ended by signal {-code}; its processes save what they have and end, too")
    return INTERRUPTED


def _exit_code(run: Run, code: int) -> int:
    """What the run says of how it ended, or else what the launcher says."""
    from cuarl.run import read_manifest

    code = _told(code)
    last = read_manifest(run.path).attempts[-1:]
    return last[0].exit_code if last and last[0].exit_code is not None else max(code, 1) if code else 0
