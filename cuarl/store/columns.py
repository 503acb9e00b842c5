"""Column types that give back exactly what was put in, on SQLite and on PostgreSQL (see ``codec``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import JSON, Dialect, Double, LargeBinary, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from cuarl.store import codec


class Verbatim(TypeDecorator[str]):
    """Any text, U+0000 and lone surrogates included; sorted by code point on either database."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """SQLite's default collation compares bytes; PostgreSQL's is the server's locale unless told."""
        if dialect.name != "postgresql":
            return Text()
        from sqlalchemy.dialects.postgresql import TEXT  # a dialect takes a while to load, and most runs have SQLite

        return TEXT(collation="C")

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape what databases refuse."""
        return None if value is None else codec.encode_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Undo the escape."""
        return None if value is None else codec.decode_text(value)


class Json(TypeDecorator[Any]):
    """A tree of mappings, lists and scalars: JSON, and JSONB on PostgreSQL. None is NULL."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """JSONB where there is one."""
        if dialect.name != "postgresql":
            return dialect.type_descriptor(JSON(none_as_null=True))
        from sqlalchemy.dialects.postgresql import JSONB

        return dialect.type_descriptor(JSONB(none_as_null=True))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Escape what JSON can't hold."""
        return codec.encode_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Undo the escape."""
        return codec.decode_json(value)


class Real(TypeDecorator[float]):
    """A float64; NaN is refused."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        """Refuse NaN, which SQLite would turn into NULL."""
        if value is not None and math.isnan(value):
            raise ValueError("NaN can't be stored in this column")
        return value


class RealOrNan(TypeDecorator[float]):
    """A float64 that may be NaN, which is kept as NULL (metrics of steps that had nothing to compute)."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        """NaN becomes NULL."""
        return None if value is None or math.isnan(value) else value

    def process_result_value(self, value: float | None, dialect: Dialect) -> float:
        """NULL becomes NaN."""
        return math.nan if value is None else value


class BigInt(TypeDecorator[int]):
    """An integer of any size, kept as decimal text: seeds come from digests and may exceed 64 bits."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        """To decimal text."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:
        """From decimal text."""
        return None if value is None else int(value)


class PackedIds(TypeDecorator[tuple[int, ...]]):
    """Token ids, four bytes each before deflating."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Sequence[int] | None, dialect: Dialect) -> bytes | None:
        """Pack."""
        return None if value is None else codec.pack_ids(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> tuple[int, ...] | None:
        """Unpack."""
        return None if value is None else codec.unpack_ids(value)


class PackedFloats(TypeDecorator[tuple[float, ...]]):
    """Logprobs, eight bytes each, bit for bit."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Sequence[float] | None, dialect: Dialect) -> bytes | None:
        """Pack."""
        return None if value is None else codec.pack_floats(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> tuple[float, ...] | None:
        """Unpack."""
        return None if value is None else codec.unpack_floats(value)
