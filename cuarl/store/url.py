"""Which database is meant, and how it is shown: URLs are checked here, and masked before anyone reads them."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from cuarl.errors import ConfigError

EXAMPLE_URL = "sqlite:///runs/cuarl.db"


def parse_url(url: str) -> URL:
    """Check a URL and settle its driver. Raises ConfigError for anything but a SQLite file or PostgreSQL."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the text itself may hold a password, so it is not repeated
        raise ConfigError(
            "the database URL can't be read", where="DATABASE_URL or --db", hint=f"export DATABASE_URL={EXAMPLE_URL}"
        ) from None
    dialect = parsed.drivername.split("+")[0]
    if dialect == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise ConfigError(
                "an in-memory database can't be shared between threads and processes",
                where=masked(parsed),
                hint=f"export DATABASE_URL={EXAMPLE_URL}",
            )
        return parsed.set(drivername="sqlite+pysqlite")
    if dialect in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise ConfigError(
        f'the store can\'t use "{dialect}": it knows sqlite and postgresql',
        where="DATABASE_URL or --db",
        hint=f"export DATABASE_URL={EXAMPLE_URL}",
    )


def require_database(url: str) -> None:
    """Raise ConfigError where a SQLite file is not there yet: to look into it would make it."""
    path = sqlite_path(parse_url(url))
    if path is not None and not path.is_file():
        raise ConfigError(
            "there are no episodes in the store yet", where=masked(url), hint="cuarl rollout --agent oracle"
        )


def masked(url: URL | str) -> str:
    """A URL as people may see it: no user, password or options."""
    parsed = parse_url(url) if isinstance(url, str) else url
    dialect = parsed.drivername.split("+")[0]
    if dialect == "sqlite":
        return f"sqlite:///{parsed.database or ''}"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{dialect}://{parsed.host or 'localhost'}{port}/{parsed.database or ''}"


def sqlite_path(url: URL) -> Path | None:
    """The file of a SQLite database, or None for a server."""
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database.removeprefix("file:"))


def default_blobs_url(url: URL, runs_dir: Path) -> str:
    """Where screenshots go unless said otherwise: beside a SQLite file, else in the folder of the runs."""
    path = sqlite_path(url)
    return str((path.parent if path else runs_dir) / "blobs")
