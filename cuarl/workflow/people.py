"""What people said of verdicts, for evaluations that lie in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuarl.errors import CuarlError
from cuarl.workflow import episodes as parts
from cuarl.workflow.watcher import Note

if TYPE_CHECKING:
    from cuarl.settings import Settings


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
