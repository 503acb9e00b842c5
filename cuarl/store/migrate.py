"""Move a database's schema to another revision: one process at a time, in one transaction, after a copy of the file.

Nobody else changes a schema; opening a store only looks (``schema``). The revisions are alembic's, in ``migrations``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from cuarl.errors import StoreError
from cuarl.store.engine import make_engine
from cuarl.store.guard import copy_file, exclusive, one_at_a_time
from cuarl.store.schema import (
    REVISIONS,
    VERSION_TABLE,
    SchemaState,
    look,
    not_current,
    read_version,
    require_revision,
)
from cuarl.store.url import masked, parse_url, sqlite_path

_SCRIPTS = Path(__file__).parent / "migrations"
_FIRST = REVISIONS[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a migration would do, or has done."""

    direction: Literal["none", "up", "down"]
    start: str
    """The revision it starts from; ``base`` for an empty database."""
    target: str
    steps: tuple[str, ...] = ()
    """One line a revision, in the order they run."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """What going down would lose: how many of what."""
    stamped: bool = False
    """The database had no version; it looks like ``start`` and is marked so first."""
    copied_to: Path | None = None
    """Where the SQLite file was copied to before anything was changed."""


def plan(url: str, to: str = "head") -> Plan:
    """What ``migrate`` would do. Changes nothing. Raises what ``migrate`` raises, but for losses."""
    parsed = parse_url(url)
    engine = make_engine(parsed)
    try:
        look(engine)
        path = sqlite_path(parsed)
        stand_in = path is not None and not path.exists()  # connecting would make the file
        with (_empty() if stand_in else engine).connect() as connection:
            return _plan(connection, require_revision(to))
    finally:
        engine.dispose()


def migrate(url: str, to: str = "head", *, force: bool = False) -> Plan:
    """Bring a database to a revision, up or down; waits for another process that is doing so.

    All or nothing: a failure leaves the database as it was. Raises StoreError if going down would lose rows and
    ``force`` is not given, or if the tables are not those of any revision; PrerequisiteError if they are newer.
    """
    target = require_revision(to)
    parsed = parse_url(url)
    engine = make_engine(parsed)
    path = sqlite_path(parsed)
    try:
        look(engine)
        with one_at_a_time(path), exclusive(engine) as connection:
            todo = _plan(connection, target)
            _refuse_losses(todo, force, masked(parsed))
            changes = todo.direction != "none" and todo.start != "base"
            copied = copy_file(path, todo.start) if path and changes else None
            _run(connection, todo)
        return Plan(todo.direction, todo.start, todo.target, todo.steps, todo.losses, todo.stamped, copied)
    except SQLAlchemyError as error:
        raise StoreError(
            f"the migration failed and was undone: {str(error).splitlines()[0]}",
            where=masked(parsed),
            hint="cuarl db check",
        ) from error
    finally:
        engine.dispose()


def migration_sql(url: str, to: str = "head") -> str:
    """The SQL of ``migrate``, for those who run it themselves. Changes nothing."""
    parsed = parse_url(url)
    todo = plan(url, to)
    config = _config()
    config.attributes["dialect"] = parsed.get_backend_name()
    config.output_buffer = io.StringIO()
    if todo.stamped:
        command.stamp(config, todo.start, sql=True)
    if todo.direction == "up":
        command.upgrade(config, todo.target if todo.start == "base" else f"{todo.start}:{todo.target}", sql=True)
    elif todo.direction == "down":
        command.downgrade(config, f"{todo.start}:{todo.target}", sql=True)
    sql = config.output_buffer.getvalue()
    if sql and parsed.get_backend_name() == "sqlite":  # alembic wraps PostgreSQL's in a transaction by itself
        return f"PRAGMA foreign_keys = OFF;\n\nBEGIN;\n\n{sql}COMMIT;\n"
    return sql


# --- planning ------------------------------------------------------------------------------------------------------


def _plan(connection: Connection, target: str) -> Plan:
    version = read_version(connection)
    if version.state is SchemaState.NEWER:
        raise not_current(version, where=masked(connection.engine.url))
    stamped = version.state is SchemaState.UNVERSIONED
    if stamped:
        _require_first(connection)
    start = _FIRST if stamped else version.current or "base"
    order = ("base", *REVISIONS)
    here, there = order.index(start), order.index(target)
    scripts = ScriptDirectory.from_config(_config())
    if there >= here:
        steps = tuple(_line(scripts, r) for r in order[here + 1 : there + 1])
        return Plan("up" if steps or stamped else "none", start, target, steps, stamped=stamped)
    undone = tuple(reversed(order[there + 1 : here + 1]))
    losses: dict[str, int] = {}
    for revision in undone:
        found = scripts.get_revision(revision).module.losses(connection)
        losses |= {what: count for what, count in found.items() if count}
    return Plan("down", start, target, tuple(_line(scripts, r) for r in undone), losses, stamped)


def _line(scripts: ScriptDirectory, revision: str) -> str:
    doc = scripts.get_revision(revision).doc or ""
    return f"{revision}  {doc.splitlines()[0]}"


def _require_first(connection: Connection) -> None:
    """A database from before versions were kept must have the tables of the first revision."""
    with _empty().connect() as model:
        _run(model, Plan("up", "base", _FIRST))
        expected = _shape(model)
    found = {t: c for t, c in _shape(connection).items() if t in expected}
    wrong = [t for t in sorted(expected) if found.get(t) != expected[t]]
    if wrong:
        raise StoreError(
            f"the database has no schema version, and its tables are not those of {_FIRST}: {', '.join(wrong)}",
            where=masked(connection.engine.url),
            hint="cuarl db rebuild --yes",
        )


def _empty() -> Engine:
    """An empty database in memory; gone with its connection."""
    return create_engine("sqlite://", poolclass=NullPool)


def _shape(connection: Connection) -> dict[str, set[str]]:
    look = inspect(connection)
    tables = (t for t in look.get_table_names() if t != VERSION_TABLE)
    return {t: {c["name"] for c in look.get_columns(t)} for t in tables}


def _refuse_losses(todo: Plan, force: bool, where: str) -> None:
    if todo.losses and not force:
        lost = ", ".join(f"{count} {what}" for what, count in todo.losses.items())
        raise StoreError(
            f"going back to {todo.target} would lose {lost}",
            where=where,
            hint=f"cuarl db export backup && cuarl db migrate --to {todo.target} --force",
        )


# --- running -------------------------------------------------------------------------------------------------------


def _config(connection: Connection | None = None) -> Config:
    config = Config(stdout=io.StringIO(), output_buffer=io.StringIO())
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    if connection is not None:
        config.attributes["connection"] = connection
    return config


def _run(connection: Connection, todo: Plan) -> None:
    config = _config(connection)
    if todo.stamped:
        command.stamp(config, todo.start)
    if todo.direction == "up":
        command.upgrade(config, todo.target)
    elif todo.direction == "down":
        command.downgrade(config, todo.target)
