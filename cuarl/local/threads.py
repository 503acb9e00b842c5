"""An application on a free port of loopback, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuarl.web.listen import make_server


@contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Serve while inside, as the product's own servers do; gives the base URL. ``options`` are uvicorn's."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = make_server(app, **options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
