"""What the options before the command say, for the rest of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from cuarl.settings import Settings

Display = Literal["auto", "rich", "plain", "none"]


@dataclass(slots=True)
class State:
    """The options before the command."""

    debug: bool = False
    quiet: bool = False
    display: Display = "auto"
    env_file: Path | None = None
    log_level: str | None = None
    """None if neither ``--log-level``, ``-q`` nor ``-v`` was given."""


STATE = State()
"""One process runs one command."""


def load_settings(**flags: Any) -> Settings:
    """Machine facts and secrets, with the flags given on the command line on top (those that are None are left out).

    Secrets in them are masked in all output from here on.
    """
    from cuarl.settings import Settings
    from cuarl.terminal.logs import configure

    given = {name: value for name, value in flags.items() if value is not None}
    settings = Settings.load(env_file=STATE.env_file, **given)
    settings.tell_hub()
    if STATE.log_level is None and settings.log_level:  # it stands in .env, which is read only now
        configure(settings.log_level)
    _tell_new_folder(given.get("database_url"))
    return settings


def _tell_new_folder(database_url: str | None) -> None:
    """Say it where a database lies in a folder that is not there yet, since a mistyped path looks like that."""
    if not (database_url or "").startswith("sqlite"):
        return
    from cuarl.store.url import parse_url, sqlite_path
    from cuarl.terminal.output import note

    path = sqlite_path(parse_url(str(database_url)))
    if path is not None and not path.parent.is_dir():
        note(f"the folder {path.parent} is not there yet, and is made for the database")
