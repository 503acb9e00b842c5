"""What of an episode's HTTP is not as usual: signed in from the start, recorded, or answered from a recording."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cuarl.env.browser.har import start_digest
from cuarl.env.browser.har_record import HarRecorder
from cuarl.env.browser.options import TrafficOptions
from cuarl.env.browser.replay import Replay
from cuarl.env.browser.storage import lasting
from cuarl.tasks.task import TaskInstance


class Traffic:
    """Of one episode. Raises Missing if no recording begins as it does."""

    def __init__(self, options: TrafficOptions, task: TaskInstance, seed: int, session: str) -> None:
        self.unrecorded = options.unrecorded
        self._storage = options.storage
        start = start_digest(task.preset, seed)
        self._name = f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', task.task_id)[:80]}-seed{seed}"
        self.replay: Replay | None = options.recordings.replay(start, session) if options.recordings else None
        self.recorder = HarRecorder(options.record_to, start, session) if options.record_to else None

    @property
    def context_options(self) -> dict[str, Any]:
        """For Playwright's context."""
        storage = lasting(self._storage) if self._storage and self.replay else self._storage
        found: dict[str, Any] = {"storage_state": storage} if storage else {}
        return found | (self.recorder.options if self.recorder else {})

    @property
    def scripts(self) -> tuple[str, ...]:
        """JavaScript for each page: a recorded page goes by the time at which it was recorded."""
        if self.replay is None:
            return ()
        return (clock_script() % round((self.replay.began.timestamp() - time.time()) * 1000),)

    def end(self, *, closed: bool) -> None:
        """Keep the recording, if the context could be closed. Raises EnvError if it can't be kept."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.keep(self._name) if closed else recorder.discard()


@lru_cache(maxsize=1)
def clock_script() -> str:
    """JavaScript with a place for how many milliseconds the clock is put forward."""
    return files("cuarl.env.browser").joinpath("clock.js").read_text(encoding="utf-8")
