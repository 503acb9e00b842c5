"""The stream of groups with a sampler that counts, and episodes of known length."""

from __future__ import annotations

import gc
import json

import anyio
import pytest
from counter_env import TASK, Asking, CounterEnv, setup, spec

from cuarl.policy.sampler import SamplerCapabilities
from cuarl.policy.sampling.batcher import Batcher
from cuarl.rollout.pause import PauseGate, RecallingSampler
from cuarl.rollout.spec import Limits
from cuarl.rollout.stream import Stream, StreamConfig
from cuarl.trajectory import Sampled

pytestmark = pytest.mark.anyio
SIZE = 2
"""Attempts a group."""

TIMES = {"started_at", "wall_s", "model_s", "env_s", "ready_s", "check_at", "check_s"}


class Place:
    """A stream whose group number s has episodes of ``turns(s)`` turns; tells what happened."""

    def __init__(self, turns, *, per_batch=1, max_age=2, env=CounterEnv, limits=None, at_once=64):
        self.turns, self.version, self.batches, self.gone = turns, 0, [], []
        gate = PauseGate()
        batcher = Batcher(self.answer(gate), lambda r: r.seed, max_batch=99)
        self.batcher = batcher
        sampler = RecallingSampler(Asked(batcher), gate)
        made = setup(env, lambda s, e: Asking(sampler, turns(int(s.group_id[2:]))), limits)
        self.stream = Stream(
            StreamConfig(per_batch, max_age, at_once),
            gate,
            made,
            plan=lambda t: [spec(i, t.serial) for i in range(SIZE)],
            next_tasks=lambda serial, count: [TASK.task_id] * count,
            swap=self.swap,
            join=batcher.join,
            dropped=lambda ticket, step, age: self.gone.append((ticket.serial, step, age)),
        )

    def answer(self, gate):
        async def run(requests):
            await gate.passing()
            self.batches.append((self.version, len(requests)))
            return [
                Sampled(
                    token_ids=(r.seed % 97,),
                    logprobs=(-1.0,),
                    policy_version=self.version,
                    images=tuple(p.screenshot.ref for p in r.messages[0].parts),
                )
                for r in requests
            ]

        return run

    async def swap(self, version):
        self.version = version

    async def steps(self, first, last, state=None):
        """Take the batches of these steps; serial numbers, ages and state after each."""
        found = []
        async with self.stream.running(state):
            for step in range(first, last + 1):
                taken = await self.stream.take(step, step - 1)
                await self.stream.settled()
                versions = [[t.sampled.policy_version for t in e.turns] for g in taken.groups for e in g.trajectories]
                rewards = [g.rewards for g in taken.groups]
                ids = [g.group_id for g in taken.groups]
                found.append((ids, taken.ages, versions, rewards, self.stream.state()))
        return found


class Asked:
    capabilities = SamplerCapabilities(token_ids=True, logprobs=True, images=True, name="counted")

    def __init__(self, batcher):
        self.batcher = batcher

    async def sample(self, request):
        return await self.batcher.ask(request)

    async def close(self):
        pass


def without_times(state):
    def kept(value):
        if isinstance(value, dict):
            return {k: kept(v) for k, v in value.items() if k not in TIMES}
        return [kept(v) for v in value] if isinstance(value, list) else value

    return kept(json.loads(state))


async def test_equal_episodes_are_taken_in_order_and_never_dropped():
    place = Place(lambda serial: 4)
    found = await place.steps(1, 6)
    assert [ids for ids, *_ in found] == [[f"g.{i}"] for i in range(6)]
    # every other group is started while the next batch is there already, and held before its first turn
    assert [ages[0] for _, ages, *_ in found] == [0, 1, 2, 1, 2, 1]
    assert place.gone == []


async def test_an_episode_that_is_held_goes_on_with_the_new_policy():
    found = await Place(lambda serial: 3 + 2 * (serial % 3)).steps(1, 5)
    assert any(len(set(versions)) > 1 for *_, episodes, _, _ in found for versions in episodes)
    assert all(versions == sorted(versions) for *_, episodes, _, _ in found for versions in episodes)
    assert all(rewards == [[1.0, 1.0]] for *_, rewards, _ in found)


async def test_a_group_that_gets_too_old_is_dropped_and_replaced():
    place = Place(lambda serial: 99 if serial == 1 else 2, limits=Limits(max_turns=99))
    found = await place.steps(1, 6)
    # its first turns are of version 0: at step 3 it would be 2 old, at step 4 it would be 3
    assert place.gone == [(1, 3, 3)]
    taken = [i for ids, *_ in found for i in ids]
    assert "g.1" not in taken
    assert len(taken) == 6
    assert max(ages[0] for _, ages, *_ in found) <= 2


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
async def test_what_is_taken_up_again_goes_on_as_if_nothing_had_happened(stop):
    def turns(serial):
        return 2 + 5 * serial % 7

    whole = Place(turns, per_batch=2, max_age=3, at_once=9)
    expected = await whole.steps(1, 6)
    state = expected[stop - 1][-1]
    assert any(g["answers"] for g in json.loads(state)["air"])
    again = Place(turns, per_batch=2, max_age=3, at_once=9)
    again.version = stop - 1
    found = await again.steps(stop + 1, 6, state)
    assert [f[:4] for f in found] == [e[:4] for e in expected[stop:]]
    assert [without_times(f[4]) for f in found] == [without_times(e[4]) for e in expected[stop:]]
    assert again.batches == whole.batches[-len(again.batches) :]


async def test_a_step_that_is_undone_leaves_what_was_there_before_its_batch_was_taken():
    place = Place(lambda serial: 2 + 3 * (serial % 3))
    stream = place.stream
    async with stream.running():
        for step in (1, 2):
            stream.begin_step()
            await stream.take(step, step - 1)
            await stream.settled()
        before = stream.state()
        stream.begin_step()
        stream.undo_step()
        assert stream.state() == before, "its batch was not even taken"
        stream._undone = False
        stream.begin_step()
        await stream.take(3, 2)
        await stream.settled()
        assert stream.state() != before
        stream.undo_step()
        assert stream.state() == before


async def test_what_is_put_down_before_everybody_is_held_is_taken_up_without_loss():
    place, again = (Place(lambda serial: 2 + 3 * (serial % 3)) for _ in range(2))
    async with place.stream.running():
        for step in (1, 2, 3):
            await place.stream.take(step, step - 1)
        state = place.stream.state()
    serials = {group["ticket"][0] for group in json.loads(state)["air"]}
    found = await again.steps(4, 7, state)
    taken = [int(i[2:]) for ids, *_ in found for i in ids]
    dropped = [serial for serial, *_ in again.gone]
    assert set(taken + dropped) >= serials and len(taken) == len(set(taken)) == 4
    assert all(age <= 2 for _, ages, *_ in found for age in ages)


async def test_an_environment_that_does_not_repeat_itself_loses_its_episode_by_name():
    class Other(CounterEnv):
        def look(self):
            self.counter += 1000  # another colour than when the state was taken
            return super().look()

    place = Place(lambda serial: 3 + 9 * (serial % 2))
    (first,) = await place.steps(1, 1)
    assert any(g["answers"] for g in json.loads(first[-1])["air"])
    again = Place(lambda serial: 3 + 9 * (serial % 2), env=Other)
    async with again.stream.running(first[-1]):
        with anyio.fail_after(5):
            while again.stream.waiting != 2:
                await anyio.sleep(0.01)
        lost = [t for g in json.loads(again.stream.state())["air"] for t in g["done"].values() if t["failure"]]
    assert {t["failure"]["boundary"] for t in lost} == {"env"}
    assert "played again" in lost[0]["failure"]["message"]


async def test_time_that_an_episode_is_held_counts_towards_no_limit():
    place = Place(lambda serial: 3 + 3 * (serial % 3), limits=Limits(deadline_s=0.5, turn_s=0.5))
    async with place.stream.running():
        for step in range(1, 4):
            taken = await place.stream.take(step, step - 1)
            await place.stream.settled()
            await anyio.sleep(0.6)
            assert [t.failure for g in taken.groups for t in g.trajectories] == [None] * SIZE
            assert [t.stop for g in taken.groups for t in g.trajectories] == ["done"] * SIZE


async def test_it_ends_while_everybody_is_held():
    place = Place(lambda serial: 3 + 9 * (serial % 2))
    with anyio.fail_after(5), pytest.raises(RuntimeError, match="the trainer failed"):
        async with place.stream.running():
            await place.stream.settled()
            raise RuntimeError("the trainer failed")


async def test_five_hundred_steps_leave_nothing_behind():
    place, counts = Place(lambda serial: 2 + serial % 3), {}
    async with place.stream.running(None):
        for step in range(1, 501):
            await place.stream.take(step, step - 1)
            await place.stream.settled()
            place.batches.clear()
            if step % 100 == 0:
                gc.collect()
                counts[step] = len(gc.get_objects()), len(place.stream.state())
    objects, states = zip(*counts.values(), strict=True)
    assert max(objects) - objects[0] < 1000, counts  # as many as the episodes under way differ by
    assert max(states) < 2 * states[0], counts
