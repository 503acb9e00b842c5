"""Parquet files that Hugging Face ``datasets`` knows to hold pictures. Needs pyarrow, and nothing else."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from cuarl.errors import MissingExtra, StoreError
from cuarl.regular_file import open_regular

_ROWS = 256
_GROUP_BYTES = 64 << 20
"""Pictures are large: a group of rows is held in memory when it is written and when it is read."""
_FILE_BYTES = 400 << 20
Row = dict[str, Any]


def require_pyarrow() -> Any:
    """The package pyarrow. Raises MissingExtra."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("data sets need the extra data", hint='pip install "cuarl[data]"') from error


def picture_type(arrow: Any) -> Any:
    """What ``datasets`` keeps a picture as: its file and the file's name."""
    return arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])


class Shards:
    """One table in files of a few hundred megabytes each, ``<folder>/<split>-00000.parquet``.

    ``with`` closes the last.
    """

    def __init__(self, folder: Path, columns: Mapping[str, Any]) -> None:
        """``columns``: names and Arrow types; those of ``picture_type``, and lists of it, are marked as pictures."""
        arrow = require_pyarrow()
        self._parquet: Any = importlib.import_module("pyarrow.parquet")
        self._arrow, self._folder = arrow, folder
        self._schema = arrow.schema(list(columns.items()), metadata={"huggingface": _features(arrow, columns)})
        self._waiting: dict[str, list[Row]] = {}
        self._bytes: Counter[str] = Counter()
        self._writers: dict[str, Any] = {}
        self._written: Counter[str] = Counter()
        self._numbers: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        """Rows of each split."""

    def add(self, split: str, row: Row, size: int = 0) -> None:
        """Add a row with pictures of ``size`` bytes to a split."""
        self._waiting.setdefault(split, []).append(row)
        self._bytes[split] += size
        self.counts[split] += 1
        if len(self._waiting[split]) >= _ROWS or self._bytes[split] >= _GROUP_BYTES:
            self._flush(split)

    def _flush(self, split: str) -> None:
        rows = self._waiting.pop(split, [])
        if not rows:
            return
        if split not in self._writers:
            self._folder.mkdir(exist_ok=True)
            path = self._folder / f"{split}-{self._numbers[split]:05d}.parquet"
            self._writers[split] = self._parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._writers[split].write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))
        self._written[split] += self._bytes.pop(split, 0)
        if self._written[split] >= _FILE_BYTES:
            self._end(split)

    def _end(self, split: str) -> None:
        self._writers.pop(split).close()
        self._written.pop(split, None)
        self._numbers[split] += 1

    def __enter__(self) -> Shards:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for split in list(self._waiting) if error is None else []:
            self._flush(split)
        for split in list(self._writers):
            self._end(split)


def splits(folder: Path) -> list[str]:
    """The splits whose files are in a folder."""
    return sorted({path.name.rsplit("-", 1)[0] for path in folder.glob("*-*.parquet")})


def read_rows(folder: Path, split: str, columns: Sequence[str]) -> Iterator[Row]:
    """Some columns of a split, in the order in which they were written. Raises StoreError that names the file.

    Links are not followed: a data set may come from anybody.
    """
    require_pyarrow()
    parquet: Any = importlib.import_module("pyarrow.parquet")
    for path in sorted(folder.glob(f"{split}-*.parquet")):
        try:
            with open_regular(path, follow=False) as opened, parquet.ParquetFile(opened) as file:
                missing = [name for name in columns if name not in file.schema_arrow.names]
                if missing:
                    raise ValueError(f"there is no column {missing[0]}")
                for batch in file.iter_batches(batch_size=16, columns=list(columns)):
                    yield from batch.to_pylist()
        except (OSError, ValueError, LookupError) as error:  # Arrow's own errors are some of these
            cause = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(f"this file of the data set can't be read: {cause}", where=str(path)) from error


def _features(arrow: Any, columns: Mapping[str, Any]) -> str:
    """What ``datasets`` looks for in a file: which columns are more than their type tells."""
    picture, one = picture_type(arrow), {"_type": "Image"}
    kinds = {picture: one, arrow.list_(picture): {"_type": "List", "feature": one}}
    return json.dumps({"info": {"features": {name: kinds[kind] for name, kind in columns.items() if kind in kinds}}})
