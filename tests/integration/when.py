"""Something that happens to a run in its course, from the thread that waits for the moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def once(holds: Callable[[], bool], then: Callable[[], object], *, after_s: float = 0.0) -> threading.Thread:
    """Have ``then`` done ``after_s`` after ``holds`` does; a thread to be joined."""

    def watch() -> None:
        while not holds():
            time.sleep(0.05)
        time.sleep(after_s)
        then()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread
