"""Executions on the ledger: ended at their gym server."""

from __future__ import annotations

import logging

from cuarl.env.gym.client import Gym
from cuarl.env.leases import SWEEPERS, Lease
from cuarl.settings import Settings

logger = logging.getLogger(__name__)

KIND = "gym"


async def end(lease: Lease, settings: Settings) -> None:
    """Terminate the execution of a lease. Raises EnvError if the server can't be asked."""
    execution = lease.detail.get("execution", "")
    if not execution:
        logger.warning(
            "a run ended while the gym server at %s was starting task %s; if it did, only the server knows the "
            "execution",
            lease.detail["base_url"],
            lease.detail["task"],
        )
        return
    key = settings.gym_api_key
    gym = Gym(lease.detail["base_url"], lease.detail["gym_id"], key.get_secret_value() if key else None)
    try:
        await gym.terminate(execution)
    finally:
        await gym.close()


SWEEPERS[KIND] = end
