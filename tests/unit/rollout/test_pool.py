from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import anyio
import pytest
from counter_env import UP, CounterEnv, Listed, setup, spec

from cuarl.errors import MissingSecret, RolloutError, StoreError
from cuarl.rollout.failures import FailureWindow
from cuarl.rollout.pool import collect
from cuarl.types import Finish, StopReason

pytestmark = pytest.mark.anyio
PLAN = [spec(attempt, group) for group in range(3) for attempt in range(4)]


def ends_after(ticks):
    """An agent that takes ``ticks(spec)`` turns of the event loop for its first decision."""

    def make(spec, env):
        class Agent(Listed):
            async def act(self, *args):
                for _ in range(ticks(spec)):
                    await anyio.lowlevel.checkpoint()
                return await super().act(*args)

        return Agent(UP, UP, Finish())

    return make


async def test_groups_come_in_plan_order_whatever_ends_first():
    finished, steady = [], await collect(PLAN, setup(CounterEnv, Listed(UP, UP, Finish())))
    reverse = ends_after(lambda s: 50 - 10 * s.attempt)
    groups = await collect(
        PLAN, setup(CounterEnv, reverse), progress=lambda t, done, total: finished.append((t.episode_id, done, total))
    )
    assert [g.group_id for g in groups] == ["g.0", "g.1", "g.2"]
    assert [[t.attempt for t in g.trajectories] for g in groups] == [[0, 1, 2, 3]] * 3
    assert [f[0] for f in finished] != [s.episode_id for s in PLAN]
    assert [f[1:] for f in finished] == [(i, 12) for i in range(1, 13)]
    assert [g.rewards for g in groups] == [g.rewards for g in steady] == [[1.0] * 4] * 3


async def test_no_more_than_the_bound_run_at_once_and_all_are_closed():
    envs, open_now, most = [], 0, 0

    class Counted(CounterEnv):
        async def reset(self, task, seed):
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            for _ in range(20):  # one that never waits may have its end before the next begins
                await anyio.lowlevel.checkpoint()
            return await super().reset(task, seed)

        async def close(self):
            nonlocal open_now
            open_now -= 1
            await super().close()

    def make():
        envs.append(Counted())
        return envs[-1]

    await collect(PLAN, setup(make, Listed(UP, UP, Finish())), max_concurrent=3)
    assert (most, open_now, len(envs)) == (3, 0, 12)
    assert all(e.closed == 1 for e in envs)


async def test_failed_episode_leaves_its_siblings_alone():
    def make(spec, env):
        if spec.attempt == 1:
            raise RuntimeError("no agent")
        return Listed(UP, UP, Finish())

    groups = await collect(PLAN[:4], setup(CounterEnv, make))
    assert groups[0].rewards == [1.0, None, 1.0, 1.0]


async def test_episodes_attend_only_while_they_may_sample():
    live, seen = 0, []

    @contextmanager
    def join():
        nonlocal live
        live += 1
        yield
        live -= 1

    def judge(*args):
        seen.append(live)
        raise RuntimeError

    make = setup(CounterEnv, Listed(UP, Finish()), join=join, judge=judge)
    with pytest.raises(RolloutError):
        await collect(PLAN[:1], make)
    assert (live, seen) == (0, [0])


async def test_a_sampler_is_told_where_a_collection_begins():
    told = []
    made = replace(setup(CounterEnv, Listed(UP, Finish())), begin=lambda: told.append("begin"))
    for _ in range(2):
        await collect(PLAN, made, progress=lambda *_: told.append("episode"))
    assert told == (["begin"] + 12 * ["episode"]) * 2


async def test_every_finished_episode_is_saved_with_its_pictures_one_at_a_time():
    saved, busy = [], False

    async def save(episode):
        nonlocal busy
        assert not busy
        busy = True
        await anyio.sleep(0.001)
        busy = False
        saved.append(episode)

    await collect(PLAN, setup(CounterEnv, Listed(UP, UP, Finish())), save=save)
    assert {e.trajectory.episode_id for e in saved} == {s.episode_id for s in PLAN}
    assert all(t.screenshot.digest in e.pictures for e in saved for t in e.trajectory.turns)


def fails_from(n):
    def make(spec, env):
        if spec.group_id != "g.0":
            raise RuntimeError(f"worker {spec.attempt % 2} is gone")
        return Listed(UP, UP, Finish())

    return make


async def test_collection_stops_when_too_many_fail_and_names_the_causes():
    saved = []

    async def save(episode):
        saved.append(episode.trajectory.episode_id)

    with pytest.raises(RolloutError, match="5 of the last 8 episodes failed") as e:
        await collect(
            PLAN,
            setup(CounterEnv, fails_from(1)),
            max_concurrent=1,
            failures=FailureWindow(size=8, max_share=0.5),
            save=save,
        )
    assert "3x agent RuntimeError" in e.value.what
    assert "2x agent RuntimeError" in e.value.what
    assert saved[:9] == [s.episode_id for s in PLAN[:9]], "what was complete is saved"
    assert len(saved) < len(PLAN)


async def test_failures_are_counted_over_several_collections():
    window = FailureWindow(size=6, max_share=0.5)
    half_broken = setup(CounterEnv, lambda s, e: Listed(UP, UP, Finish()) if s.attempt == 0 else 1 / 0)
    await collect(PLAN[:3], half_broken, failures=window)
    with pytest.raises(RolloutError, match="4 of the last 6"):
        await collect(PLAN[:3], half_broken, failures=window)


async def test_collection_in_which_everything_fails_is_an_error_however_small():
    with pytest.raises(RolloutError, match="all 2 episodes failed"):
        await collect(PLAN[:2], setup(CounterEnv, lambda s, e: 1 / 0))


async def test_missing_prerequisite_is_raised_as_it_is_after_teardown():
    envs = []

    def make():
        envs.append(CounterEnv(at={0: anyio.sleep_forever}))
        return envs[-1]

    def agent(spec, env):
        if spec.attempt == 3:
            raise MissingSecret("no key")
        return Listed(UP)

    with pytest.raises(MissingSecret, match="no key"):
        await collect(PLAN[:4], setup(make, agent), max_concurrent=4)
    assert [e.closed for e in envs] == [1, 1, 1, 1]


async def test_failing_store_ends_the_collection_with_its_own_error():
    async def save(episode):
        raise StoreError("disk full")

    with pytest.raises(StoreError, match="disk full"):
        await collect(PLAN, setup(CounterEnv, Listed(UP, UP, Finish())), save=save)


async def test_error_of_whoever_watches_comes_out_alone():
    def progress(trajectory, done, total):
        raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError):
        await collect(PLAN, setup(CounterEnv, Listed(UP, UP, Finish())), max_concurrent=1, progress=progress)


async def test_episode_that_ends_while_everything_is_cancelled_is_saved():
    saved = []

    async def save(episode):
        saved.append(episode.trajectory.episode_id)

    with anyio.CancelScope() as scope:
        await collect(
            PLAN,
            setup(CounterEnv, Listed(UP, UP, Finish())),
            max_concurrent=4,
            save=save,
            progress=lambda t, done, total: scope.cancel() if done == 2 else None,
        )
    assert saved[:2] == [s.episode_id for s in PLAN[:2]]


async def test_cancellation_tears_everything_down_and_saves_what_was_complete():
    envs, saved, cut, under_way = [], [], [], []

    def begun(what):
        under_way.append(what)
        if under_way.count("save") == 2 and under_way.count("hang") == 4:
            scope.cancel()

    async def hang():
        begun("hang")
        await anyio.sleep_forever()

    def make():
        envs.append(CounterEnv(at={} if len(envs) < 2 else {1: hang}))
        return envs[-1]

    async def save(episode):
        begun("save")
        await anyio.sleep(0.1)
        saved.append(episode.trajectory.stop)

    with anyio.move_on_after(30) as scope:
        await collect(
            PLAN,
            setup(make, Listed(UP, UP, Finish())),
            max_concurrent=4,
            save=save,
            on_cancel=lambda e: cut.append(e.trajectory.stop),
        )
    assert scope.cancelled_caught
    assert saved == [StopReason.DONE] * 2
    assert cut == [StopReason.CANCELLED] * 4
    assert [e.closed for e in envs] == [1] * 6
