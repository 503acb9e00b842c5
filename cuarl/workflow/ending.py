"""How a run ended: its row in the store says the same as its manifest, whatever ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.errors import CuarlError, StoreError
from cuarl.run import Run
from cuarl.run.directory import outcome
from cuarl.run.manifest import MANIFEST, Status
from cuarl.safe_text import loggable
from cuarl.store import RunRecord
from cuarl.workflow import signals

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
    """The row of a run that is in use, from its start to how it ended.

    ``flush`` stores what is left, whatever happened.
    """
    settle(store)

    def finish(kind: object, error: BaseException | None, trace: object) -> None:
        signals.hold()
        said, late = error, None
        try:
            flush()
        except StoreError as refused:
            late = refused
            said = error if isinstance(error, Exception) else refused
        try:
            _finish(store, run, outcome(said)[0], said)
        except StoreError as refused:
            late = late or refused
        if late is not None and isinstance(error, Exception):
            error.add_note(f"storing what was left failed, too: {late}")
        elif late is not None:
            raise late

    store.start_run(
        RunRecord(
            id=run.run_id,
            name=run.name,
            command=run.manifest.kind,
            directory=str(run.path),
            model=config.model_name,
            seed=config.seed,
            config=config.model_dump(mode="json"),
            total_steps=config.max_steps if run.manifest.kind == "train" else None,
            info=_facts(run),
        )
    )
    with ExitStack() as stack:
        stack.push(finish)
        yield


def _facts(run: Run) -> dict[str, object]:
    """What it runs on, for those who see only the store."""
    manifest = run.manifest
    known = {"code": manifest.code, "machine": manifest.machine}
    facts = {name: one.model_dump(mode="json") for name, one in known.items()}
    return {**facts, "model_revision": manifest.model_revision, "parent": manifest.parent}


def settle(store: Store) -> None:
    """Mark runs that could not say in the store how they ended: killed ones, and those that found its disk full."""
    for record in store.runs(status="running"):
        path = Path(record.directory)
        if not record.directory or not (path / MANIFEST).is_file():
            continue
        try:
            run = Run(path)
        except CuarlError:  # a broken manifest says nothing; whoever asks for this run is told
            continue
        status = run.status
        if run.run_id != record.id or status not in IN_STORE:
            continue
        if status == "killed":
            run.close_killed()
        _finish(store, run, status, run.manifest.attempts[-1].error or status)


def _finish(store: Store, run: Run, status: Status, said: object) -> None:
    text = loggable(str(said)).splitlines()[0] if said is not None and str(said) else ""
    store.finish_run(run.run_id, IN_STORE[status], text)
