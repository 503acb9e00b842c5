"""How a run ended: its row in the store says the same as its manifest, whatever ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.cli import signals
from cuarl.errors import StoreError
from cuarl.run import Run
from cuarl.run.directory import outcome
from cuarl.run.manifest import MANIFEST, Status
from cuarl.store import RunRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cuarl.config.schema import ExperimentConfig
    from cuarl.store import Store
    from cuarl.store.records import RunStatus

IN_STORE: Mapping[Status, RunStatus] = {
    "success": "completed", "failed": "failed", "cancelled": "cancelled", "killed": "failed",
}  # fmt: skip
"""What the row of a run says for each status of its manifest."""


@contextmanager
def in_store(store: Store, run: Run, config: ExperimentConfig, flush: Callable[[], None]) -> Iterator[None]:
    """The row of a run that is in use, from its start to how it ended. ``flush`` stores what is left, whatever happened."""
    close_killed(store)

    def finish(kind: object, error: BaseException | None, trace: object) -> None:
        signals.hold()
        try:
            flush()
        except StoreError as late:
            _finish(store, run, error if isinstance(error, Exception) else late)
            if not isinstance(error, Exception):
                raise
            error.add_note(f"storing what was left failed, too: {late}")
        else:
            _finish(store, run, error)

    store.start_run(
        RunRecord(
            id=run.run_id, name=run.name, command=run.manifest.kind, directory=str(run.path), model=config.model_name,
            seed=config.seed, config=config.model_dump(mode="json"),
        )
    )  # fmt: skip
    with ExitStack() as stack:
        stack.push(finish)
        yield


def close_killed(store: Store) -> None:
    """Mark the runs whose process was killed: it could not say so itself."""
    for record in store.runs():
        path = Path(record.directory)
        if record.status != "running" or not record.directory or not (path / MANIFEST).is_file():
            continue
        run = Run(path)
        if run.run_id == record.id and run.status == "killed":
            run.close_killed()
            store.finish_run(record.id, IN_STORE["killed"], "killed")


def _finish(store: Store, run: Run, error: BaseException | None) -> None:
    said = str(error).splitlines()[0] if error is not None and str(error) else ""
    store.finish_run(run.run_id, IN_STORE[outcome(error)[0]], said)
