"""The environment contract as checks that any implementation can be held to.

In your own tests::

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_env_keeps_the_contract(check):
        anyio.run(check, make_env, task)

Each check takes an ``EnvFactory`` and a task, makes fresh environments, closes them, and raises ``ContractBroken`` with
the clause that does not hold. Checks of what an environment doesn't claim in its ``capabilities`` pass at once.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from cuarl.env.base import AskedOracleEnv, Env, EnvFactory, OracleEnv
from cuarl.errors import CuarlError, EnvError
from cuarl.tasks.task import TaskInstance
from cuarl.types import ACTION, Action, Click, Finish, Move, Observation, Wait

SEED = 7
MAX_ORACLE_STEPS = 60
ConformanceCheck = Callable[[EnvFactory, TaskInstance], Awaitable[None]]


class ContractBroken(CuarlError, AssertionError):
    """An environment does not do what ``env/base.py`` says."""


def require(holds: bool, clause: str, *, found: object = "") -> None:
    """Raise ContractBroken unless ``holds``."""
    if not holds:
        raise ContractBroken(clause + (f"; found {found!r}" if found != "" else ""))


@asynccontextmanager
async def fresh(make: EnvFactory) -> AsyncIterator[Env]:
    """A new environment that is closed whatever happens."""
    env = await make()
    try:
        yield env
    finally:
        with anyio.CancelScope(shield=True):
            await env.close()


async def declares_what_it_can_do(make: EnvFactory, task: TaskInstance) -> None:
    """The object satisfies the protocol, and its capabilities are known kinds and never change."""
    async with fresh(make) as env:
        require(isinstance(env, Env), "an environment has capabilities, reset, step, state and close", found=type(env))
        before = env.capabilities
        unknown = before.actions - set(_kinds())
        require(not unknown, "capabilities.actions are kinds of types.Action", found=sorted(unknown))
        if before.oracle:
            require(
                isinstance(env, OracleEnv | AskedOracleEnv),
                "an environment that claims an oracle has oracle_action() or ask_oracle()",
            )
        await env.reset(task, SEED)
        require(env.capabilities == before, "capabilities are fixed for the life of the object")


async def shows_a_screen_of_constant_size(make: EnvFactory, task: TaskInstance) -> None:
    """Reset and step give RGB pictures of one size, whose digest names their pixels."""
    async with fresh(make) as env:
        first = await env.reset(task, SEED)
        _require_picture(first)
        second = (await env.step(Wait(seconds=0))).observation
        _require_picture(second)
        a, b = first.screenshot, second.screenshot
        require((a.width, a.height) == (b.width, b.height), "all screens of an episode have one size")


async def serves_one_episode(make: EnvFactory, task: TaskInstance) -> None:
    """A second reset raises EnvError."""
    async with fresh(make) as env:
        await env.reset(task, SEED)
        try:
            await env.reset(task, SEED)
        except EnvError:
            return
        raise ContractBroken("a second reset raises EnvError: an environment serves one episode")


async def steps_only_after_reset(make: EnvFactory, task: TaskInstance) -> None:
    """A step before reset raises EnvError."""
    async with fresh(make) as env:
        try:
            await env.step(Wait(seconds=0))
        except EnvError:
            return
        raise ContractBroken("a step before reset raises EnvError")


async def rejects_what_lies_outside(make: EnvFactory, task: TaskInstance) -> None:
    """A click beyond the screen is rejected with a reason, and nothing changes."""
    async with fresh(make) as env:
        screen = (await env.reset(task, SEED)).screenshot
        if "click" in env.capabilities.actions:
            for x, y in ((screen.width, 0), (0, screen.height), (screen.width * 9, screen.height * 9)):
                await _require_rejected(env, Click(x=x, y=y))


async def rejects_what_it_does_not_declare(make: EnvFactory, task: TaskInstance) -> None:
    """An action of a kind outside of the capabilities, or with keys held where none can be, is rejected with a reason.

    Nothing changes.
    """
    async with fresh(make) as env:
        await env.reset(task, SEED)
        can = env.capabilities
        if "move" not in can.actions:
            await _require_rejected(env, Move(x=1, y=1))
        if "click" in can.actions and not can.held:
            await _require_rejected(env, Click(x=1, y=1, held=("ctrl",)))


async def tells_its_state_as_plain_data(make: EnvFactory, task: TaskInstance) -> None:
    """State is a mapping of JSON values, not changed by being read, nor by a step afterwards."""
    async with fresh(make) as env:
        await env.reset(task, SEED)
        if not env.capabilities.state:
            require(await env.state() == {}, "an environment that can't read its state gives {}")
            return
        before = json.dumps(await env.state(), sort_keys=True)
        kept: Mapping[str, Any] = await env.state()
        require(json.dumps(kept, sort_keys=True) == before, "reading the state changes nothing")
        await env.step(Click(x=1, y=1) if "click" in env.capabilities.actions else Wait(seconds=0))
        require(json.dumps(kept, sort_keys=True) == before, "a state that was read does not change later")


async def resets_exactly(make: EnvFactory, task: TaskInstance) -> None:
    """Where ``exact_reset`` is claimed: the same seed and actions give the same pixels and states."""
    tracks = []
    for _ in range(2):
        async with fresh(make) as env:
            if not env.capabilities.exact_reset:
                return
            seen = [(await env.reset(task, SEED)).screenshot.digest]
            for action in _stroll(env):
                seen.append((await env.step(action)).observation.screenshot.digest)
            tracks.append((seen, json.dumps(await env.state(), sort_keys=True)))
    require(tracks[0] == tracks[1], "the same task, seed and actions give the same pixels and the same state")


async def closes_twice(make: EnvFactory, task: TaskInstance) -> None:
    """Close may be called again, and before any reset."""
    env = await make()
    await env.close()
    await env.close()
    env = await make()
    await env.reset(task, SEED)
    await env.close()
    await env.close()


async def can_be_cancelled(make: EnvFactory, task: TaskInstance) -> None:
    """Cancellation gets through within seconds, and the environment can still be closed."""
    async with fresh(make) as env:
        await env.reset(task, SEED)
        with anyio.fail_after(10):
            with anyio.CancelScope() as scope:
                scope.cancel()
                while True:
                    await env.step(Wait(seconds=0))
        require(scope.cancelled_caught, "a cancelled step lets go")


async def oracle_solves_the_task(make: EnvFactory, task: TaskInstance) -> None:
    """Where an oracle is claimed: its actions are carried out, and it ends by claiming success."""
    async with fresh(make) as env:
        if not isinstance(env, OracleEnv | AskedOracleEnv) or not env.capabilities.oracle:
            return
        await env.reset(task, SEED)
        for _ in range(MAX_ORACLE_STEPS):
            action = env.oracle_action() if isinstance(env, OracleEnv) else await env.ask_oracle()
            require(action.kind in env.capabilities.actions, "the oracle uses declared actions", found=action.kind)
            if isinstance(action, Finish):
                require(action.success, "the oracle finds a way", found=action.message)
                return
            info = (await env.step(action)).info
            require("rejected" not in info, "the oracle's actions are carried out", found=info.get("rejected"))
        raise ContractBroken(f"the oracle finishes within {MAX_ORACLE_STEPS} steps")


CHECKS: tuple[ConformanceCheck, ...] = (
    declares_what_it_can_do, shows_a_screen_of_constant_size, serves_one_episode, steps_only_after_reset,
    rejects_what_lies_outside, rejects_what_it_does_not_declare, tells_its_state_as_plain_data, resets_exactly,
    closes_twice, can_be_cancelled, oracle_solves_the_task,
)  # fmt: skip
"""Every clause of the contract."""


def _kinds() -> list[str]:
    schema: dict[str, Any] = ACTION.json_schema()
    return list(schema["discriminator"]["mapping"])


def _stroll(env: Env) -> list[Action]:
    actions = [Click(x=x, y=y) for x, y in ((20, 60), (60, 120), (100, 90), (10, 30))]
    return list(actions) if "click" in env.capabilities.actions else [Wait(seconds=0)]


def _require_picture(observation: Observation) -> None:
    shot = observation.screenshot
    require(shot.image.mode == "RGB", "screens are RGB", found=shot.image.mode)
    require(shot.width > 0 and shot.height > 0, "screens have a size", found=(shot.width, shot.height))
    require(len(shot.digest) == 64, "screens have a SHA-256 digest", found=shot.digest)


async def _require_rejected(env: Env, action: Action) -> None:
    before = await env.state()
    info = (await env.step(action)).info
    require(
        bool(info.get("rejected")), f"{action.kind} that can't be carried out says why in info['rejected']", found=info
    )
    require(await env.state() == before, "a rejected action changes nothing")
