"""Server-sent events: one question to the store a second, whatever the number of those who look."""

import anyio
import anyio.to_thread
import pytest

from cuarl.monitor.web.stream import Stream
from cuarl.store.pages import Pages
from tests.unit.monitor.web.conftest import asking, fill

pytestmark = pytest.mark.anyio


class Counted(Pages):
    asked = 0

    def stamp(self):
        self.asked += 1
        return super().stamp()


async def test_fifty_who_look_are_all_told_which_run_has_moved_and_cost_as_much_as_one(store):
    fill(store)
    pages = Counted(store.engine)
    stream, told = Stream(pages, every_s=0.2), []

    async def look():
        async for event in stream.events():
            if event.startswith(b"event: changed"):
                told.append(event)
                return

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(look)
        while not pages.asked:
            await anyio.sleep(0.01)
        await anyio.to_thread.run_sync(store.finish_run, "better", "completed")
    assert told == [b'event: changed\ndata: ["better"]\n\n'] * 50
    assert pages.asked < 25


async def test_a_connection_is_told_that_it_may_come_again_soon(store):
    fill(store)
    async for first in Stream(Pages(store.engine)).events():
        assert first == b"retry: 2000\n\n"
        break


async def test_the_stream_is_no_page_and_needs_the_token(store):
    async with asking(store, token="s3cret-token") as client:
        assert (await client.get("/events")).status_code == 401
