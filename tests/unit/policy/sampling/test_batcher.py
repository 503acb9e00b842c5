from collections.abc import Sequence

import anyio
import pytest
from anyio.lowlevel import checkpoint

from cuarl.pacing import own_pass
from cuarl.policy.sampling.batcher import Batcher

pytestmark = pytest.mark.anyio


class Recorder:
    """Answers with ten times the question; remembers who was asked together."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.batches: list[list[int]] = []
        self._seconds = seconds

    async def run(self, asks: Sequence[int]) -> list[int]:
        self.batches.append(list(asks))
        await anyio.sleep(self._seconds)
        return [10 * a for a in asks]

    def collect(self, max_batch: int = 100, max_wait_s: float | None = None) -> Batcher[int, int]:
        return Batcher(self.run, lambda ask: ask, max_batch=max_batch, max_wait_s=max_wait_s)


async def test_a_wave_starts_when_everyone_waits_and_is_ordered() -> None:
    recorder = Recorder()
    batcher = recorder.collect()

    async def episode(name: int, delay: int) -> None:
        with batcher.join():
            for turn in range(2):
                for _ in range(delay):
                    await checkpoint()
                assert await batcher.ask(100 * turn + name) == 10 * (100 * turn + name)

    async with anyio.create_task_group() as tasks:
        for name, delay in [(3, 50), (1, 0), (2, 200)]:
            tasks.start_soon(episode, name, delay)
    assert recorder.batches == [[1, 2, 3], [101, 102, 103]]


async def test_who_leaves_is_not_waited_for() -> None:
    recorder = Recorder()
    batcher = recorder.collect()
    leave = anyio.Event()

    async def idle() -> None:
        with batcher.join():
            await leave.wait()

    async def asker() -> None:
        with batcher.join():
            assert await batcher.ask(1) == 10

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(idle)
        tasks.start_soon(asker)
        await anyio.sleep(0.02)
        assert recorder.batches == []
        leave.set()
    assert recorder.batches == [[1]]


async def test_the_successor_of_a_finished_episode_joins_the_next_wave() -> None:
    recorder = Recorder()
    batcher = recorder.collect()
    slots = anyio.CapacityLimiter(2)

    async def episode(name: int, turns: int) -> None:
        async with slots:
            with batcher.join():
                for turn in range(turns):
                    await batcher.ask(10 * turn + name)
            await checkpoint()

    async with anyio.create_task_group() as tasks:
        for name, turns in [(1, 1), (2, 3), (3, 2)]:
            tasks.start_soon(episode, name, turns)
    assert recorder.batches == [[1, 2], [3, 12], [13, 22]]


async def test_without_attendance_what_comes_together_is_answered_together() -> None:
    recorder = Recorder()
    batcher = recorder.collect(max_batch=2)
    async with anyio.create_task_group() as tasks:
        for name in (3, 1, 2):
            tasks.start_soon(batcher.ask, name)
    assert recorder.batches == [[1, 2], [3]], "in order, at most max_batch at a time"


async def test_a_slow_episode_is_waited_for_no_longer_than_allowed() -> None:
    recorder = Recorder()
    batcher = recorder.collect(max_wait_s=0.02)
    with batcher.join(), batcher.join(), anyio.fail_after(1):
        assert await batcher.ask(1) == 10


async def test_a_cancelled_episode_does_not_hold_up_the_others() -> None:
    recorder = Recorder()
    batcher = recorder.collect()
    replies = []

    async def episode(name: int, patience_s: float) -> None:
        with batcher.join(), anyio.move_on_after(patience_s):
            replies.append(await batcher.ask(name))

    async with anyio.create_task_group() as tasks:
        with batcher.join():
            for name, patience_s in [(1, 0.02), (2, 5.0), (3, 5.0)]:
                tasks.start_soon(episode, name, patience_s)
            await anyio.sleep(0.05)
    assert recorder.batches == [[2, 3]]
    assert replies == [20, 30]


async def test_a_cancelled_leader_still_answers_the_others() -> None:
    recorder = Recorder(seconds=0.05)
    batcher = recorder.collect()
    replies = []

    async def episode(name: int, patience_s: float) -> None:
        with anyio.move_on_after(patience_s):
            replies.append(await batcher.ask(name))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(episode, 1, 0.02)
        tasks.start_soon(episode, 2, 5.0)
    assert recorder.batches == [[1, 2]]
    assert 20 in replies


async def test_an_error_reaches_everyone_in_the_wave_and_the_next_wave_runs() -> None:
    fail = True
    errors = []

    async def run(asks: Sequence[int]) -> list[int]:
        if fail:
            raise RuntimeError("no memory")
        return list(asks)

    batcher: Batcher[int, int] = Batcher(run, lambda ask: ask, max_batch=1)

    async def episode(name: int) -> None:
        try:
            await batcher.ask(name)
        except RuntimeError as error:
            errors.append(str(error))

    async with anyio.create_task_group() as tasks:
        for name in range(3):
            tasks.start_soon(episode, name)
    assert errors == ["no memory"] * 3
    fail = False
    assert await batcher.ask(4) == 4


def test_waves_can_be_used_in_one_event_loop_after_another() -> None:
    recorder = Recorder()
    batcher = recorder.collect()
    assert [anyio.run(batcher.ask, i) for i in range(2)] == [0, 10]


async def test_a_wave_waits_for_those_who_wait_for_a_pass_of_their_own() -> None:
    """However many there are: what is in a batch is decided by who asks, and not by when their turn to compute
    comes."""
    recorder = Recorder()
    batcher = recorder.collect()

    async def asks(name: int) -> None:
        await own_pass()
        await batcher.ask(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asks, 1)
        for _ in range(100):
            tasks.start_soon(own_pass)
        tasks.start_soon(asks, 2)
    assert recorder.batches == [[1, 2]]
