"""A store as a data set that is made to be given away.

README.md         the card: where it comes from, what is in it, how it is read
episodes/, turns/ the tables (``write``), with pictures in them
runs.jsonl        without folders and machines; likewise tasks, evaluations, and human_verdicts without who gave them
manifest.json     format version, what was exported, how much
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from cuarl.store.aside import whole_or_not_at_all
from cuarl.store.blobs import Blobs
from cuarl.store.dataset.card import Told, dataset_card
from cuarl.store.dataset.shards import require_pyarrow
from cuarl.store.dataset.write import write_dataset
from cuarl.store.export import FORMAT, Exported, Found, run_id, tables_of, write_lines, write_manifest
from cuarl.store.records import HumanVerdict, RunRecord
from cuarl.store.redaction import RedactedEpisodes, Redaction
from cuarl.store.store import Store
from cuarl.trajectory import Trajectory
from cuarl.types import Record

_BESIDE = ("runs", "tasks", "human_verdicts", "evaluations")


def export_dataset(
    store: Store, folder: Path, *, run: str | None = None, images: bool = True, redact: str | None = None
) -> Exported:
    """Write a store, or one of its runs, as a data set; see ``export.export_store``.

    Raises MissingExtra without pyarrow.
    """
    require_pyarrow()
    if run is not None:
        run = run_id(store.runs(), run)
    found = Found()
    with whole_or_not_at_all(folder) as aside:
        pictures = Blobs(str(aside / "blobs")) if redact else store.blobs
        redaction = RedactedEpisodes(Redaction(redact), store.blobs, pictures) if redact else None
        tables, told, shown = tables_of(store, run, found, redaction), Told(redacted=redact), set[str]()

        def encoded(digest: str) -> bytes | None:
            if not images or not pictures.exists(digest):
                return None
            shown.add(digest)
            return pictures.png(digest)

        def episodes() -> Iterator[Trajectory]:
            for episode in tables["episodes"]:
                assert isinstance(episode, Trajectory)
                told.add(episode, overruled)
                yield episode

        overruled = store.overruled(run=run)
        wholes, turns = write_dataset(aside, episodes(), encoded, overruled)
        shutil.rmtree(aside / "blobs", ignore_errors=True)
        counts = {"episodes": wholes.total(), "turns": turns.total()}
        for name in _BESIDE:  # behind the episodes, by which it is known what belongs to them
            counts[name] = write_lines(aside / f"{name}.jsonl", map(_to_be_given, tables[name]))
        runs = [record for record in store.runs() if run is None or record.id == run]
        (aside / "README.md").write_text(dataset_card(told, runs, wholes, turns), encoding="utf-8")
        facts = {"format": FORMAT, "run": run, "counts": counts, "screenshots": len(shown), "redacted": redact}
        write_manifest(aside, facts)
    missing = len(found.digests - shown) if images else 0
    return Exported(folder, counts, len(shown), missing, parquet=True)


def _to_be_given(record: Record) -> Record:
    """A record without what belongs to a machine or a person."""
    if isinstance(record, RunRecord):
        return record.model_copy(update={"directory": "", "message": "", "info": {}})
    return record.model_copy(update={"actor": ""}) if isinstance(record, HumanVerdict) else record
