"""A data set's tables back into episodes and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image
from pydantic import ValidationError

from cuarl.errors import StoreError
from cuarl.store.blobs import Blobs
from cuarl.store.codec import load_line
from cuarl.store.dataset.shards import read_rows, splits
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot


def read_episodes(folder: Path) -> Iterator[Trajectory]:
    """The episodes of a data set's folder. Raises StoreError for what can't be read."""
    for split in splits(folder / "episodes"):
        episodes = read_rows(folder / "episodes", split, ("episode_id", "turn_count", "record"))
        turns = read_rows(folder / "turns", split, ("episode_id", "record")) if (folder / "turns").is_dir() else ()
        yield from joined(episodes, turns)


def joined(episodes: Iterable[Mapping[str, Any]], turns: Iterable[Mapping[str, Any]]) -> Iterator[Trajectory]:
    """Episodes of the rows of both tables, in the order in which they were exported; equal to those that were.

    Raises StoreError where turns are missing or in another order.
    """
    waiting = iter(turns)
    for row in episodes:
        name, count = str(row["episode_id"]), int(row["turn_count"])
        mine = list(islice(waiting, count))
        if len(mine) != count or any(turn["episode_id"] != row["episode_id"] for turn in mine):
            raise StoreError(
                f'the turns of episode "{name}" are missing, or in another order than the episodes',
                hint="take both tables as they were exported: neither shuffled nor filtered",
            )
        try:
            record = load_line(row["record"]) | {"turns": [load_line(turn["record"]) for turn in mine]}
            yield Trajectory.model_validate(record)
        except (ValueError, TypeError, ValidationError) as error:
            raise StoreError(f'episode "{name}" can\'t be read: {str(error).splitlines()[0]}') from error


def copy_pictures(folder: Path, blobs: Blobs) -> int:
    """Put a data set's pictures into a store, byte for byte; gives their number. Raises StoreError."""
    known: set[str] = set()
    for table, columns in (("turns", ("image",)), ("episodes", ("final_image", "more_images"))):
        for split in splits(folder / table):
            for row in read_rows(folder / table, split, columns):
                known.update(put_pictures(row, blobs, known))
    return len(known)


def put_pictures(row: Mapping[str, Any], blobs: Blobs, known: set[str]) -> list[str]:
    """Put the pictures of a row, as files or as ``datasets`` decodes them, into a store; gives their digests.

    Those of ``known`` digests, which their paths name, are not looked at again. Raises StoreError for one that is not
    what it says.
    """
    found = [row.get("image"), row.get("final_image"), *(row.get("more_images") or ())]
    return [_put(one, blobs, known) for one in found if one is not None]


def _put(picture: Any, blobs: Blobs, known: set[str]) -> str:
    if isinstance(picture, Image.Image):
        screenshot = Screenshot(picture)
        blobs.put([screenshot])
        return screenshot.digest
    named = str(picture.get("path") or "").rsplit("/", 1)[-1].removesuffix(".png")
    return named if named in known else blobs.put_file(picture["bytes"], named)
