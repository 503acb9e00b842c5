"""Workers that serve one episode after the other, so that a process need not be started for each."""

from __future__ import annotations

import anyio

from cuarl.env.leases import Ledger
from cuarl.env.workers.worker import Worker


class Pool:
    """Workers that run ``module``: those that are free are lent again, those that were left amiss are ended."""

    def __init__(self, ledger: Ledger, module: str) -> None:
        self._ledger, self._module = ledger, module
        self._free: list[Worker] = []

    async def lend(self) -> Worker:
        """A free worker, else a new one. Raises EnvError."""
        return self._free.pop() if self._free else await Worker.start(self._ledger, self._module)

    async def take_back(self, worker: Worker) -> None:
        """Keep the worker for the next episode, or end it if it can't go on."""
        if worker.usable:
            worker.forget()
            self._free.append(worker)
        else:
            await worker.end()

    async def close(self) -> None:
        """End those that are free."""
        workers, self._free = self._free, []
        async with anyio.create_task_group() as tasks:
            for worker in workers:
                tasks.start_soon(worker.end)
