"""Where the nodes of a run meet: the store of torch's launcher on node 0, in which it also leaves the run for them.

Only node 0 has the run: its folder, its database, its checkpoints. What the others need to take part (configuration,
tasks, the reward's code) they fetch here, so that all nodes do the same whatever is typed on them. Like every
rendezvous of torch it trusts whoever reaches its port.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cuarl
from cuarl.errors import ConfigError, PrerequisiteError
from cuarl.train.nodes import Node

if TYPE_CHECKING:
    from torch.distributed import TCPStore

_FILES = ("manifest.json", "config.json", "tasks.json", "reward/*.py")
_OFFER, _ENDED, _TOLD = "cuarl/run", "cuarl/ended", "cuarl/told"
_ANSWER_S, _AGAIN_S = 10.0, 0.5


def connect(node: Node, wait_s: float) -> TCPStore:
    """The store of node 0, once it is there. Raises PrerequisiteError if it isn't within ``wait_s`` seconds.

    In node 0's launcher it keeps the store open for the others, too, when torch has no more use for it.
    """
    quieted(os.environ)
    _await_listener(node, time.monotonic() + wait_s, wait_s)
    found: list[TCPStore] = []
    # whoever listens there and says nothing would be waited for without an end
    asking = threading.Thread(target=_open, args=(node, found), daemon=True)
    asking.start()
    asking.join(2 * _ANSWER_S)
    if not found:
        raise PrerequisiteError(
            "what listens there is no node 0 of a training",
            where=f"--rendezvous {node.place}",
            hint="take another port, on all nodes",
        )
    return found[0]


def quieted(environment: MutableMapping[str, str]) -> None:
    """Leave out torch's warnings of connections, a page each; to be called before torch is loaded."""
    environment.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def _open(node: Node, found: list[TCPStore]) -> None:
    from torch.distributed import TCPStore

    serving = node.rank == 0  # of one process and port torch makes one server, however often it is asked to
    wait = timedelta(seconds=_ANSWER_S)
    with suppress(RuntimeError):
        store = TCPStore(node.host, node.port, None, serving, wait, wait_for_workers=False, multi_tenant=serving)
        store.check([_OFFER])
        found.append(store)


def _await_listener(node: Node, until: float, wait_s: float) -> None:
    said = "nothing was tried"
    while True:
        left = until - time.monotonic()
        try:
            socket.create_connection((node.host, node.port), timeout=min(5.0, max(0.1, left))).close()
            return
        except OSError as error:
            said = str(error.strerror or error).lower()
        if until - time.monotonic() < _AGAIN_S:
            raise PrerequisiteError(
                f"node 0 was not reached within {wait_s:g} s: {said}",
                where=f"--rendezvous {node.place}",
                hint="start node 0, and see that its name and port can be reached from here; "
                "CUARL_RENDEZVOUS_SECONDS says how long is waited",
            )
        time.sleep(_AGAIN_S)


# --- the run, as node 0 leaves it for the others -------------------------------------------------------------------


def offer(store: TCPStore, node: Node, processes: int, run: Path) -> None:
    """Leave the run in ``run`` for the other nodes."""
    paths = [path for pattern in _FILES for path in sorted(run.glob(pattern))]
    told = {
        "name": run.name,
        "version": cuarl.__version__,
        "nodes": node.count,
        "processes": processes,
        "files": {str(p.relative_to(run)): base64.b64encode(p.read_bytes()).decode() for p in paths},
    }
    store.set(_OFFER, json.dumps(told))


def fetch(store: TCPStore, node: Node, processes: int, into: Path, wait_s: float) -> Path:
    """Take the run that node 0 offers: a folder in ``into`` that is named like it. Raises ConfigError if nodes differ.

    PrerequisiteError is raised if there is none within ``wait_s`` seconds.
    """
    from torch.distributed import DistError

    try:
        store.wait([_OFFER], timedelta(seconds=wait_s))
        told: dict[str, Any] = json.loads(store.get(_OFFER))
    except (DistError, RuntimeError) as error:
        raise PrerequisiteError(
            f"node 0 offered no run within {wait_s:g} s", where=f"--rendezvous {node.place}", hint="see what it says"
        ) from error
    here = {"version": cuarl.__version__, "nodes": node.count, "processes": processes}
    for what, mine in here.items():
        if told[what] != mine:
            raise ConfigError(
                f"node 0 has {what} {told[what]}, and node {node.rank} has {mine}",
                where=f"--rendezvous {node.place}",
                hint="the same on all nodes",
            )
    if store.add(f"cuarl/came/{node.rank}", 1) > 1:
        raise ConfigError(f"another machine is node {node.rank} already", where="--node-rank", hint="number each once")
    return _written(told, into)


def _written(told: dict[str, Any], into: Path) -> Path:
    folder = into / Path(told["name"]).name
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in told["files"].items():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ConfigError(f"node 0 offers a file outside of the run: {name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(text))
    return folder


# --- what nodes tell each other ------------------------------------------------------------------------------------


def tell_ended(store: TCPStore, what: str) -> None:
    """Say that something has ended without which the others can't go on; who says so first is believed."""
    with suppress(RuntimeError):  # then node 0 is gone, which they notice by themselves
        store.compare_set(_ENDED, "", what)


def ended(store: TCPStore) -> str | None:
    """What has ended, if anything has."""
    return store.get(_ENDED).decode() if store.check([_ENDED]) else None


def tell_told(store: TCPStore, who: str) -> None:
    """Say that ``who`` was told to end, so that all will."""
    with suppress(RuntimeError):
        store.compare_set(_TOLD, "", who)


def told(store: TCPStore) -> str | None:
    """Who was told to end, if anybody was."""
    with suppress(RuntimeError):
        return store.get(_TOLD).decode() if store.check([_TOLD]) else None
    return None


def beat(store: TCPStore, node: Node, number: int) -> None:
    """Show that this node lives."""
    store.set(f"cuarl/beat/{node.rank}", f"{number} {socket.gethostname()}")


def heard(store: TCPStore, rank: int) -> tuple[int, str] | None:
    """The last beat of a node, and its machine's name; None if it has not come yet."""
    key = f"cuarl/beat/{rank}"
    if not store.check([key]):
        return None
    number, _, host = store.get(key).decode().partition(" ")
    return int(number), host
