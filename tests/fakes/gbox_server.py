"""The local GBox server on a free port, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cuarl.env.gbox.fake import FakeGBox, Faults

KEY = "gbox-marker-6d1f"


@contextmanager
def serving(faults: Faults | None = None) -> Iterator[tuple[FakeGBox, str]]:
    """The server and its base URL."""
    import uvicorn

    fake = FakeGBox(KEY, faults=faults)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(fake.app(), log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield fake, f"http://127.0.0.1:{bound.getsockname()[1]}/api/v1"
        finally:
            server.should_exit = True
            thread.join()
