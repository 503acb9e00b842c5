import anyio
import pytest

from cuarl.env.conformance import CHECKS, ContractBroken, rejects_what_lies_outside, resets_exactly, serves_one_episode
from cuarl.env.sim.phone import SimEnv
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Click

TASK = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))


async def make():
    return SimEnv()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_simulated_phone_keeps_the_contract(check):
    anyio.run(check, make, TASK)


class Forgetful(SimEnv):
    """Starts over at every reset."""

    async def reset(self, task, seed):
        self.world = None
        return await super().reset(task, seed)


class Careless(SimEnv):
    """Pulls every click into the screen."""

    async def step(self, action):
        if isinstance(action, Click):
            action = Click(x=min(action.x, 5), y=min(action.y, 5))
        return await super().step(action)


class Moody(SimEnv):
    """Looks different each time."""

    count = 0

    async def reset(self, task, seed):
        Moody.count += 1
        return await super().reset(task, seed + Moody.count)


@pytest.mark.parametrize(
    ("check", "kind"), [(serves_one_episode, Forgetful), (rejects_what_lies_outside, Careless), (resets_exactly, Moody)]
)
def test_check_finds_an_environment_that_breaks_its_clause(check, kind):
    async def make_broken():
        return kind()

    with pytest.raises(ContractBroken):
        anyio.run(check, make_broken, TASK)
