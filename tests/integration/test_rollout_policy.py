"""Groups collected from the simulator with an in-process policy: reproducible to the bit, whatever the batches."""

from __future__ import annotations

import anyio
import pytest

from cuarl.agent import formats
from cuarl.agent.model import ModelAgent
from cuarl.env.sim.phone import SimEnv
from cuarl.policy.load import load_policy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.spec import ModelSpec
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import Limits, plan
from cuarl.tasks.task import Check, Task
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401

pytestmark = pytest.mark.integration

TASKS = [
    Task(id=path, description="Do it", checks=(Check(path=path, value=False),))
    for path in ("network.wifi.enabled", "network.bluetooth.enabled", "location.enabled")
]


@pytest.fixture
def policy(qwen3_folder):  # noqa: F811
    return load_policy(ModelSpec(model=str(qwen3_folder), device="cpu"))


def groups(policy, *, max_concurrent, run_seed=0):
    sampler, said = LocalSampler(policy), formats.get("qwen3-vl")

    async def make_env(task):
        return SimEnv()

    async def save(episode):
        await anyio.sleep(0.001 * (episode.trajectory.attempt % 3))

    setup = Setup(
        make_env=make_env,
        join=sampler.join,
        limits=Limits(max_invalid=3, max_turns=4),
        make_agent=lambda spec, env: ModelAgent(sampler, said, params=SamplingParams(max_tokens=5)),
    )
    specs = plan(TASKS, group_size=4, run_seed=run_seed, prefix="g")

    async def work():
        with anyio.fail_after(60):
            return await collect(specs, setup, max_concurrent=max_concurrent, save=save)

    return anyio.run(work)


def sampled(found):
    return [[[turn.sampled for turn in t.turns] for t in group.trajectories] for group in found]


def test_collections_with_the_same_seed_are_equal_to_the_bit(policy):
    first = groups(policy, max_concurrent=5)
    assert sampled(groups(policy, max_concurrent=5)) == sampled(first)
    assert sampled(groups(policy, max_concurrent=5, run_seed=1)) != sampled(first)
    assert all(turn.sampled.logprobs for g in first for t in g.trajectories for turn in t.turns)


def test_draws_do_not_depend_on_how_many_run_at_once(policy):
    few, many = (sampled(groups(policy, max_concurrent=n)) for n in (3, 12))
    ids = [[[s.token_ids for s in turns] for turns in attempts] for attempts in few]
    assert ids == [[[s.token_ids for s in turns] for turns in attempts] for attempts in many]


def test_attempts_of_a_group_see_the_same_screen_and_say_different_things(policy):
    for group in groups(policy, max_concurrent=12):
        firsts = [t.turns[0] for t in group.trajectories]
        assert len({turn.screenshot.digest for turn in firsts}) == 1
        assert len({turn.sampled.token_ids for turn in firsts}) > 1


def test_the_size_that_the_policys_own_processor_shows_is_recorded_with_every_turn(policy):
    policy.images.max_pixels = 64 * 96
    found = groups(policy, max_concurrent=4)
    turns = [turn for group in found for t in group.trajectories for turn in t.turns]
    seen = policy.images.resized(turns[0].screenshot.width, turns[0].screenshot.height)
    assert seen != (turns[0].screenshot.width, turns[0].screenshot.height)
    assert {turn.resized for turn in turns} == {seen}
    grid = policy.images.grid(turns[0].screenshot.width, turns[0].screenshot.height)
    image = policy.special.image
    assert all(turn.sampled.prompt_ids.count(image) == grid.tokens for turn in turns), "and it is what was shown"
