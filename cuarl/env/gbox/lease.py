"""Boxes on the ledger: found by the label they were asked for with, and terminated."""

from __future__ import annotations

from cuarl.env.gbox.client import GBox
from cuarl.env.leases import SWEEPERS, Lease
from cuarl.errors import EnvError
from cuarl.settings import Settings

KIND = "gbox"


async def end(lease: Lease, settings: Settings) -> None:
    """Terminate the box of a lease. Raises EnvError if the service can't be asked."""
    key = settings.gbox_api_key
    if key is None:
        raise EnvError("ending a box needs the key of its account", hint="export GBOX_API_KEY=KEY")
    boxes = GBox(lease.detail["base_url"], key.get_secret_value())
    try:
        await boxes.end(lease.id, lease.detail.get("box", ""))
    finally:
        await boxes.close()


SWEEPERS[KIND] = end
