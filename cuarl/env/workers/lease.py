"""Workers on the ledger: found again by a mark that they and all they start inherit, and ended."""

from __future__ import annotations

from cuarl.env.leases import SWEEPERS, Lease
from cuarl.env.processes import end_session

KIND = "worker"


async def end(lease: Lease) -> None:
    """End all processes of a worker. Raises EnvError if some of them won't go."""
    await end_session(lease.id, KIND)


SWEEPERS[KIND] = lambda lease, settings: end(lease)
