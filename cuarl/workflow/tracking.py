"""What a run tells trackers such as Weights & Biases and TensorBoard: metrics, evaluation tables, and a few pictures.

Calls are made on a thread of each tracker's own, so that training never waits for one, and whatever a tracker raises
ends there: the run goes on, and says so once. A resumed run goes on with the tracker's run, whose id is an event in the
store.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from PIL import Image

from cuarl.config.keys import paths, value_of
from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Outcome, breakdown
from cuarl.monitor.frames import draw
from cuarl.safe_text import loggable, printable
from cuarl.store.store import Store
from cuarl.workflow.trackers import Tracker, TrackerRun

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig
    from cuarl.run import Run

logger = logging.getLogger(__name__)

EVENT = "tracker"
"""Kind of the event that says under which id a tracker knows the run."""
PATIENCE_S = 20.0
"""What trackers may take at the end of a run for what is still to be sent."""
_MOST_WAITING = 1000
_EPISODES = 4
"""Pictures of so many episodes go to a tracker with each evaluation."""
_HEIGHT = 480
"""Pixels of their height."""
_FRAMES = 12
COLUMNS = ("task", "success", "episodes", "false claims", "side effects", "steps")


class Tracking:
    """Everything that trackers are told of one run. A ``types.Sink``."""

    def __init__(self, config: ExperimentConfig, run: Run, store: Store, *, after: int | None = None) -> None:
        """Begin to start the trackers, each on its own thread.

        ``after`` is the last step that a resumed run has told already; what it told of later ones is told again.
        """
        self._store, self._run_id = store, run.run_id
        known = {event.data.get("name"): event.data.get("id") for event in store.events(run=run.run_id, kind=EVENT)}
        self._couriers = [_Courier(name) for name in dict.fromkeys(config.track)]
        for courier in self._couriers:
            seen = known.get(courier.name)
            courier.begin(
                TrackerRun(
                    project=config.track_project,
                    name=run.name,
                    run_id=run.run_id,
                    folder=run.path,
                    known=seen,
                    after=after,
                ),
                self._note,
            )
            if seen is None:
                courier.post(lambda tracker: tracker.configure(_flat(config)))

    def _note(self, name: str, tracker_id: str, url: str) -> None:
        self._store.log_event(self._run_id, EVENT, {"name": name, "id": tracker_id, "url": url})

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Tell the metrics of a step; those that are not finite are no numbers to a tracker, and left out."""
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        for courier in self._couriers:
            courier.post(lambda tracker: tracker.log(finite, step))

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Events stay in the store: trackers have no place for them."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """Tell an evaluation's table of tasks, and show some of its episodes."""
        rows, step = table(evaluation.outcomes), evaluation.step
        drawn = cache(partial(self._pictures, [outcome.episode_id for outcome in some_of(evaluation.outcomes)]))
        for courier in self._couriers:
            courier.post(lambda tracker: tracker.table(f"eval/{evaluation.label}/tasks", COLUMNS, rows, step))
            courier.post(lambda tracker: tracker.pictures(f"eval/{evaluation.label}/episodes", drawn(), step))

    def _pictures(self, episodes: Sequence[str]) -> dict[str, Image.Image]:
        """A strip of each episode by its task, drawn where it is wanted: on a tracker's thread."""
        found = self._store.load(episodes)
        strips = strips_of([[one.picture for one in draw(t, self._store.blobs.get)] for t in found.values()])
        names = [f"{i}-{printable(t.task_id)}" for i, t in enumerate(found.values())]
        return dict(zip(names, strips, strict=True))

    def close(self) -> None:
        """Send what is left, as far as that is done within ``PATIENCE_S``."""
        for courier in self._couriers:
            courier.end()
        for courier in self._couriers:
            courier.wait(PATIENCE_S)


class _Courier:
    """Makes one tracker's calls, in their order, on a thread that nobody waits for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._deliver, name=f"cuarl-{name}", daemon=True)
        self._tracker: Tracker | None = None
        self._lost, self._warned = 0, False

    def begin(self, about: TrackerRun, note: Callable[[str, str, str], None]) -> None:
        """Start the tracker; ``note`` is told its name, the id that it gave the run, and where that can be seen."""

        def start() -> None:
            tracker = Tracker.start(self.name, about)
            self._tracker = tracker
            note(self.name, tracker.id, tracker.url)

        self._waiting.put(start)
        self._thread.start()

    def post(self, call: Callable[[Tracker], None]) -> None:
        """Have a call made when those before it are; it is lost where too many wait already."""

        def made() -> None:
            if self._tracker is None:
                self._lost += 1
            else:
                call(self._tracker)

        try:
            self._waiting.put_nowait(made)
        except queue.Full:
            self._lost += 1

    def end(self) -> None:
        """Make no further calls than those that wait."""

        def finish() -> None:
            if self._tracker is not None:
                self._tracker.finish()

        for call in (finish, None):
            try:
                self._waiting.put_nowait(call)
            except queue.Full:
                self._lost += 1

    def wait(self, seconds: float) -> None:
        """Wait until the last call is made, for so long at most; say what was lost."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            logger.warning("%s did not take all of the run within %.0f s; the rest is lost", self.name, seconds)
        elif self._lost:
            logger.warning("%s did not take %d records of the run", self.name, self._lost)

    def _deliver(self) -> None:
        while (call := self._waiting.get()) is not None:
            with _TrackerBoundary(self._failed):
                call()

    def _failed(self, error: Exception) -> None:
        if not self._warned:
            cause = (str(error).strip() or type(error).__name__).splitlines()[0]
            logger.warning(
                "the tracker %s failed, and the run goes on without it: %s: %s",
                self.name,
                type(error).__name__,
                loggable(cause),
            )
        self._warned = True
        self._lost += 1


class _TrackerBoundary(AbstractContextManager[None]):
    """Where other people's trackers end: whatever one raises is reported, and goes no further.

    They raise what they like, of their own kinds and of the kinds of every library that they use, and none of it may
    end a run.
    """

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self._report = report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._report(error)
        return True


# --- what is told --------------------------------------------------------------------------------------------------


def table(outcomes: Sequence[Outcome]) -> list[list[Any]]:
    """Rates by task, the worst first, in the columns of ``COLUMNS``; None where there was no verdict."""
    found = breakdown(outcomes, "task_id").items()
    rows = [
        [printable(task), s.success_rate, s.n, s.false_completion_rate, s.side_effect_rate, s.steps_mean]
        for task, s in found
    ]
    return sorted(rows, key=lambda row: (row[1] is None, row[1], row[0]))


def some_of(outcomes: Sequence[Outcome], most: int = _EPISODES) -> list[Outcome]:
    """A few episodes to look at: successes and failures in turn, each of another task as far as there are any."""
    by_task = list({outcome.task_id: outcome for outcome in reversed(outcomes)}.values())[::-1]
    good = [outcome for outcome in by_task if outcome.success]
    bad = [outcome for outcome in by_task if outcome.success is False]
    half = most // 2
    return [*good[: max(half, most - len(bad))], *bad[: max(half, most - len(good))]][:most]


def strips_of(episodes: Sequence[Sequence[Image.Image]]) -> list[Image.Image]:
    """The pictures of each episode side by side; all strips of one size, as trackers want them."""
    rows = [[_scaled(one) for one in _fewer(pictures)] for pictures in episodes]
    width = max((sum(one.width for one in row) for row in rows), default=0)
    found = []
    for row in rows:
        strip, x = Image.new("RGB", (max(1, width), _HEIGHT), "white"), 0
        for one in row:
            strip.paste(one, (x, 0))
            x += one.width
        found.append(strip)
    return found


def _fewer(pictures: Sequence[Image.Image]) -> Sequence[Image.Image]:
    """The first and the last ones, where there are more than fit."""
    half = _FRAMES // 2
    return pictures if len(pictures) <= _FRAMES else [*pictures[:half], *pictures[-half:]]


def _scaled(picture: Image.Image) -> Image.Image:
    return picture.resize((max(1, picture.width * _HEIGHT // picture.height), _HEIGHT))


def _flat(config: ExperimentConfig) -> dict[str, Any]:
    """The configuration as trackers take it: one level, of numbers and text."""
    found = {path: value_of(config, path) for path in paths(config)}
    return {path: v if isinstance(v, bool | int | float | str) else str(v) for path, v in found.items()}
