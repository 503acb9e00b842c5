"""Whoever waits for a pass of the event loop gets one that nobody else has, in the order of asking."""

from collections.abc import Generator

import anyio
import pytest
from anyio.lowlevel import checkpoint

from cuarl import garbage, pacing
from cuarl.pacing import in_parts, own_pass, waiting

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nobody_keeps_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "SLICE_S", 0.0)


class Passes:
    """Counts passes of the event loop, and notes who returned in which."""

    def __init__(self) -> None:
        self.now = 0
        self.seen: list[tuple[int, str]] = []

    async def count(self) -> None:
        while True:
            await checkpoint()
            self.now += 1

    def note(self, name: str) -> None:
        self.seen.append((self.now, name))

    @property
    def names(self) -> str:
        return "".join(name for _, name in self.seen)

    def one_each(self) -> bool:
        return len({number for number, _ in self.seen}) == len(self.seen)


async def works(passes: Passes, name: str, times: int) -> None:
    for _ in range(times):
        await own_pass()
        passes.note(name)


async def run(passes: Passes, **times: int) -> None:
    """Start each at once, and count passes until all have had theirs."""
    async with anyio.create_task_group() as counting:
        counting.start_soon(passes.count)
        async with anyio.create_task_group() as tasks:
            for name, many in times.items():
                tasks.start_soon(works, passes, name, many)
        counting.cancel_scope.cancel()


async def test_many_that_are_ready_at_once_have_a_pass_each():
    passes = Passes()
    await run(passes, a=20, b=20, c=20, d=20)
    assert len(passes.seen) == 80
    assert passes.one_each()
    assert waiting() == 0


async def test_first_come_first_served_and_nobody_twice_before_the_others():
    passes = Passes()
    await run(passes, a=3, b=1, c=3)
    assert passes.names == "abcacac"


async def test_each_pass_of_the_loop_has_one_for_as_long_as_anyone_waits():
    passes = Passes()
    await run(passes, a=5, b=5)
    numbers = [number for number, _ in passes.seen]
    assert numbers == list(range(numbers[0], numbers[0] + 10))


@pytest.mark.parametrize("gone", ["a", "b", "c"])
async def test_who_is_cancelled_while_waiting_holds_nobody_up(gone):
    passes = Passes()
    async with anyio.create_task_group() as counting:
        counting.start_soon(passes.count)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                scopes = {name: anyio.CancelScope() for name in "abc"}

                async def in_scope(name: str) -> None:
                    with scopes[name]:
                        await works(passes, name, 2)

                for name in scopes:
                    tasks.start_soon(in_scope, name)
                while waiting() < 3:
                    await checkpoint()
                scopes[gone].cancel()
        counting.cancel_scope.cancel()
    left = "abc".replace(gone, "")
    assert passes.names in (left * 2, gone + left * 2)
    assert passes.one_each()
    assert waiting() == 0


async def test_all_cancelled_at_once_leave_nothing():
    async with anyio.create_task_group() as tasks:
        for name in "abcd":
            tasks.start_soon(works, Passes(), name, 9)
        while waiting() < 4:
            await checkpoint()
        tasks.cancel_scope.cancel()
    assert waiting() == 0
    with anyio.fail_after(30):
        await own_pass()


async def test_long_work_goes_on_before_others_begin_and_lets_each_pass_end():
    passes = Passes()

    def parts() -> Generator[None, None, str]:
        for _ in range(3):
            passes.note("L")
            yield
        passes.note("L")
        return "done"

    async def long_work() -> None:
        await own_pass()
        assert await in_parts(parts()) == "done"

    async with anyio.create_task_group() as counting:
        counting.start_soon(passes.count)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(long_work)
            for name in "abcde":
                tasks.start_soon(works, passes, name, 1)
        counting.cancel_scope.cancel()
    # whoever was called before the work turned out to be long still has the pass that it was called for
    assert passes.names == "LaLbLcLde"
    assert passes.one_each()


async def test_a_pass_is_kept_by_who_has_it_while_there_is_time(monkeypatch):
    monkeypatch.setattr(pacing, "SLICE_S", 1e9)
    passes = Passes()
    await run(passes, a=3, b=2, c=1)
    assert passes.names == "aaabbc"
    assert len({number for number, _ in passes.seen}) == 3


async def test_work_without_parts_waits_for_nothing():
    def at_once() -> Generator[None, None, int]:
        yield from ()
        return 7

    passes = Passes()
    async with anyio.create_task_group() as counting:
        counting.start_soon(passes.count)
        await checkpoint()
        before = passes.now
        assert await in_parts(at_once()) == 7
        assert passes.now == before
        counting.cancel_scope.cancel()


async def test_new_objects_are_looked_at_every_few_passes(monkeypatch):
    looked = []
    monkeypatch.setattr(garbage, "look_at_new", lambda: looked.append(None))
    passes = Passes()
    await run(passes, a=pacing.CLEAN_EVERY * 3, b=pacing.CLEAN_EVERY)
    assert len(looked) == 4


def test_each_event_loop_has_a_queue_of_its_own():
    async def leave_one_waiting() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(own_pass)
            await checkpoint()
            assert waiting() == 1
            tasks.cancel_scope.cancel()

    for _ in range(2):
        anyio.run(leave_one_waiting)

    async def count() -> int:
        return waiting()

    assert anyio.run(count) == 0
