"""Agent programs on the ledger: found again by a mark that they and all they start inherit, and ended."""

from __future__ import annotations

from cuarl.env.leases import SWEEPERS, Lease
from cuarl.env.processes import end_marked
from cuarl.errors import EnvError

KIND = "program"


async def end(lease: Lease) -> None:
    """End all processes of a program. Raises EnvError if some of them won't go."""
    left = await end_marked(lease.id)
    if left:
        raise EnvError(f"processes of program {lease.id} can't be ended: {', '.join(map(str, left))}")


SWEEPERS[KIND] = lambda lease, settings: end(lease)
