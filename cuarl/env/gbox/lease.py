"""Boxes on the ledger: found by the label they were asked for with, and terminated."""

from __future__ import annotations

from cuarl.env.gbox.client import GBox
from cuarl.env.leases import SWEEPERS, Lease
from cuarl.errors import EnvError
from cuarl.settings import Settings

KIND = "gbox"


async def end(lease: Lease, settings: Settings) -> None:
    """Terminate the box of a lease. Raises EnvError if the service can't be asked."""
    accounts = [GBox(lease.detail["base_url"], key) for key in settings.gbox_keys]
    # a lease of an earlier version names none
    boxes = next((one for one in accounts if lease.detail.get("account", one.account) == one.account), None)
    if boxes is None:
        raise EnvError("ending a box needs the key of its account", hint="export GBOX_API_KEY=KEY")
    try:
        await boxes.end(lease.id, lease.detail.get("box", ""))
    finally:
        await boxes.close()


SWEEPERS[KIND] = end
