"""What people said of verdicts, for evaluations that lie in files and those of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuarl.errors import CuarlError
from cuarl.workflow import episodes as parts
from cuarl.workflow.watcher import Note

if TYPE_CHECKING:
    from cuarl.settings import Settings
    from cuarl.store import EvaluationRecord, Store


def overruled(settings: Settings, note: Note) -> dict[str, bool]:
    """The verdicts of people that hold, by episode; none where there is no store, or none that can be asked: told."""
    from cuarl.store.url import parse_url, sqlite_path

    path = sqlite_path(parse_url(settings.db_url))
    if path is not None and not path.is_file():  # to look into it would make it
        return {}
    try:
        with parts.open_store(settings) as store:
            return store.overruled()
    except CuarlError as error:
        note(f"what people said of verdicts is left out: {error.what}")
        return {}


def evaluations(store: Store, run_id: str) -> list[EvaluationRecord]:
    """The evaluations of a run by the verdicts that hold, by step."""
    from cuarl.evaluate.stats import clustered_rate
    from cuarl.store.judged import judged
    from cuarl.store.pages import Pages

    return judged(Pages(store.engine), store.evaluations(run=run_id), clustered_rate)
