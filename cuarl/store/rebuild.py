"""Start a database over: for one that no migration can fix, or to move to another server."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import MetaData, Table, inspect
from sqlalchemy.exc import SQLAlchemyError

from cuarl.errors import StoreError
from cuarl.store.engine import make_engine
from cuarl.store.guard import copy_file, exclusive, one_at_a_time
from cuarl.store.schema import VERSION_TABLE, create_schema, look
from cuarl.store.tables import Base
from cuarl.store.url import masked, parse_url, sqlite_path


def rebuild(url: str) -> Path | None:
    """Drop the store's tables, whatever their version, and make them anew, empty. Other tables stay.

    Gives where a SQLite file was copied to before. All or nothing; raises StoreError if it can't be done.
    """
    parsed = parse_url(url)
    path = sqlite_path(parsed)
    engine = make_engine(parsed)
    try:
        look(engine)
        with one_at_a_time(path), exclusive(engine) as connection:
            ours = {*Base.metadata.tables, VERSION_TABLE} & set(inspect(connection).get_table_names())
            copied = copy_file(path, "rebuild") if path and ours else None
            present = MetaData()
            for name in ours:
                Table(name, present, autoload_with=connection, extend_existing=True)
            present.drop_all(connection, tables=[present.tables[name] for name in ours])
            create_schema(connection)
        return copied
    except SQLAlchemyError as error:
        raise StoreError(
            f"the database can't be rebuilt: {str(error).splitlines()[0]}", where=masked(parsed)
        ) from error
    finally:
        engine.dispose()
