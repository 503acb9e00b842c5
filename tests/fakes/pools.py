"""Work with a pool of workers, of which nothing may be left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from cuarl.env.leases import Ledger
from cuarl.env.workers.pool import Pool


def with_pool(ledger: Ledger, child: str, work: Callable[[Pool], Awaitable[None]]) -> None:
    """Run ``work`` with workers that run the module ``child``, and see the ledger empty afterwards."""

    async def whole() -> None:
        pool = Pool(ledger, child)
        try:
            await work(pool)
        finally:
            await pool.close()

    anyio.run(whole)
    assert ledger.leases() == []
