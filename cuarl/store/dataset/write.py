"""Episodes into the tables of a data set.

    turns/<purpose>-00000.parquet      one turn a row, with its screenshot
    episodes/<purpose>-00000.parquet   one episode a row, with the last screenshot and pictures that only prompts have

Both are in the same order. ``record`` is the whole turn, or the whole episode without its turns, as a line of JSON in
ASCII: what Parquet has no word for (halves of surrogate pairs, numbers beyond 64 bits or that are not finite) survives
there, and it is what is read back. The other columns are for whoever works with the data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cuarl.store import parquet
from cuarl.store.codec import dump_line
from cuarl.store.dataset.shards import Row, Shards, picture_type, require_pyarrow
from cuarl.trajectory import Trajectory, Turn

Encoded = Callable[[str], bytes | None]
"""The PNG file of a screenshot by its digest; None where there is none."""


def write_dataset(
    folder: Path, episodes: Iterable[Trajectory], encoded: Encoded, overruled: Mapping[str, bool]
) -> tuple[Counter[str], Counter[str]]:
    """Write the tables; gives episodes and turns of each split, which is the purpose of its episodes.

    ``overruled`` are people's verdicts by episode. Raises MissingExtra, and what ``encoded`` raises.
    """
    arrow = require_pyarrow()
    with (
        Shards(folder / "episodes", _episode_columns(arrow)) as wholes,
        Shards(folder / "turns", _turn_columns(arrow)) as turns,
    ):
        for episode in episodes:
            _add(wholes, turns, episode, encoded, parquet.judged(episode, overruled))
    return wholes.counts, turns.counts


def _add(wholes: Shards, turns: Shards, episode: Trajectory, encoded: Encoded, verdict: Row) -> None:
    for turn in episode.turns:
        row = parquet.turn_row(episode, turn) | verdict | _own(turn)
        image = _picture(turn.screenshot.digest, encoded)
        turns.add(episode.purpose, _finite(parquet.unicode_only(row)) | {"image": image}, _size(image))
    last = _picture(episode.final_screenshot.digest, encoded) if episode.final_screenshot else None
    others = [_picture(digest, encoded) for digest in _only_prompted(episode)]
    row = parquet.episode_row(episode) | verdict | _whole(episode)
    pictures = {"final_image": last, "more_images": [one for one in others if one]}
    wholes.add(episode.purpose, _finite(parquet.unicode_only(row)) | pictures, sum(map(_size, [last, *others])))


def _turn_columns(arrow: Any) -> dict[str, Any]:
    return {"image": picture_type(arrow), **parquet.turn_columns(arrow), "record": arrow.string()}


def _own(turn: Turn) -> Row:
    """What differs from the columns of a plain Parquet file: prompts name pictures by their digests."""
    window = turn.sampled and [image.digest for image in turn.sampled.images]
    return {"window": window, "record": dump_line(turn.model_dump())}


def _episode_columns(arrow: Any) -> dict[str, Any]:
    text, whole, real, picture = arrow.string(), arrow.int64(), arrow.float64(), picture_type(arrow)
    return {
        **parquet.episode_columns(arrow),
        "score": real,
        "reward": real,
        "answer": text,
        "turn_count": whole,
        "wall_s": real,
        "final_image": picture,
        "more_images": arrow.list_(picture),
        "record": text,
    }


def _whole(episode: Trajectory) -> Row:
    return {
        "score": episode.verdict and episode.verdict.score,
        "reward": episode.reward,
        "answer": episode.answer,
        "turn_count": len(episode.turns),
        "wall_s": episode.wall_s,
        "record": dump_line(episode.model_dump(exclude={"turns"})),
    }


def _only_prompted(episode: Trajectory) -> list[str]:
    """Pictures in prompts that are no screenshot of a turn: some families are shown smaller ones."""
    shown = {turn.screenshot.digest for turn in episode.turns}
    if episode.final_screenshot:
        shown.add(episode.final_screenshot.digest)
    prompted = [image.digest for turn in episode.turns if turn.sampled for image in turn.sampled.images]
    return [digest for digest in dict.fromkeys(prompted) if digest not in shown]


def _picture(digest: str, encoded: Encoded) -> Row | None:
    data = encoded(digest)
    return None if data is None else {"bytes": data, "path": f"{digest}.png"}


def _size(image: Row | None) -> int:
    return len(image["bytes"]) if image else 0


def _finite(row: Row) -> Row:
    """The row without numbers that are not finite: ``record`` has them, and nobody's mean is to become one."""
    return {name: None if _is_odd(cell) else cell for name, cell in row.items()}


def _is_odd(cell: object) -> bool:
    if isinstance(cell, list):
        return any(isinstance(item, float) and not math.isfinite(item) for item in cell)
    return isinstance(cell, float) and not math.isfinite(cell)
