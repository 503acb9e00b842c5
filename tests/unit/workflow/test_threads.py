"""Work with an event loop of its own, called where none runs, where one runs, and awaited."""

import asyncio
import threading

import anyio
import pytest

from cuarl.workflow.threads import apart, awaited


def here():
    return threading.current_thread()


async def a_loop():
    return here()


def with_a_loop():
    return anyio.run(a_loop)


def test_without_a_running_loop_it_is_done_right_here():
    assert apart(with_a_loop) is here()


def test_with_a_running_loop_it_has_a_thread():
    async def notebook():
        return apart(with_a_loop)

    assert asyncio.run(notebook()) is not here()


def test_what_it_raises_comes_out():
    def fails():
        raise ValueError("no")

    def interrupted():
        raise KeyboardInterrupt

    async def notebook():
        return apart(fails)

    for call in (lambda: asyncio.run(notebook()), lambda: asyncio.run(awaited(fails))):
        with pytest.raises(ValueError, match="no"):
            call()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(awaited(interrupted))


def test_the_loop_goes_on_while_it_is_awaited():
    async def work():
        done = threading.Event()
        waiting = asyncio.create_task(awaited(done.wait))
        await asyncio.sleep(0)  # it must not hold the loop, or nobody would set it
        done.set()
        return await waiting

    assert asyncio.run(work()) is True
