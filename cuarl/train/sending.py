"""A checkpoint for processes on other machines: node 0 has it, and sends it to those without its disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accelerate import PartialState

from cuarl.run.checkpoints import Found, newest, step_name
from cuarl.train.processes import from_main, on_another_node

_PART = 2**25
"""Bytes that are sent at a time."""


@contextmanager
def newest_at_hand(root: Path) -> Iterator[tuple[Found | None, Path]]:
    """The newest checkpoint that the main process has, and where this one can read it; every process must enter.

    It is read where it lies, except on other machines: there it lies below ``root`` only inside of this context.
    Raises CheckpointError as ``run.checkpoints.newest`` does.
    """
    if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
        yield newest(root), root
        return
    state = PartialState()
    (found,) = from_main((newest(root),) if state.is_main_process else None)
    if found is None:
        yield None, root
        return
    elsewhere = on_another_node()
    received = root / ".received" if elsewhere else root
    if state.is_main_process:
        _send(root, found.step)
    else:
        _receive(received if elsewhere and state.is_local_main_process else None)
    state.wait_for_everyone()
    try:
        yield found, received
    finally:
        state.wait_for_everyone()
        if elsewhere and state.is_local_main_process:
            shutil.rmtree(received, ignore_errors=True)


def _send(root: Path, step: int) -> None:
    folders = (root / step_name(step), root / "trainer" / step_name(step))
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as opened:
            name, part = str(path.relative_to(root)), opened.read(_PART)
            from_main((name, part))
            while part := opened.read(_PART):
                from_main((name, part))
    from_main(("", b""))


def _receive(into: Path | None) -> None:
    """Take part in it; ``into`` is where it is kept, None for nowhere."""
    if into is not None:
        shutil.rmtree(into, ignore_errors=True)
    while True:
        message: tuple[str, bytes] = from_main(None)
        name, part = message
        if not name:
            return
        if into is not None:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            with (into / name).open("ab") as opened:
                opened.write(part)
