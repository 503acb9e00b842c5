"""Browsers on the ledger: found again by a mark that all their processes inherit, and ended with their profile."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import anyio

from cuarl.env.leases import SWEEPERS, Lease
from cuarl.env.processes import end_marked
from cuarl.errors import EnvError

KIND = "browser"
PREFIX = "cuarl-browser-"


async def end(lease: Lease) -> None:
    """End all processes of a browser, and delete its folder. Raises EnvError if some of them won't go."""
    left = await end_marked(lease.id)
    if left:
        raise EnvError(f"processes of browser {lease.id} can't be ended: {', '.join(map(str, left))}")
    folder = Path(lease.detail.get("folder", ""))
    # what the ledger names is deleted only if it is what this module makes
    if folder.name.startswith(PREFIX) and folder.parent == Path(tempfile.gettempdir()):
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


SWEEPERS[KIND] = lambda lease, settings: end(lease)
