"""The manifest: what a run is, on which code and machine it ran, and how each of its attempts ended."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from cuarl.errors import CuarlError
from cuarl.run.atomic import write_text
from cuarl.run.owner import Owner, process_start
from cuarl.types import Record

MANIFEST = "manifest.json"
Kind = Literal["train", "rollout", "eval", "serve"]
Status = Literal["created", "running", "success", "failed", "cancelled", "killed"]


class Attempt(Record):
    """One start of a run, and how it ended."""

    number: PositiveInt
    started_at: str
    """UTC, ISO 8601."""
    ended_at: str | None = None
    status: Status = "running"
    exit_code: int | None = None
    error: str | None = None
    command: tuple[str, ...] = ()
    """The command line, secrets masked."""
    config_digest: str = ""
    tasks_digest: str | None = None
    """Digest of the tasks that it trained and evaluated on."""
    owner: Owner | None = None
    """The process that makes it; unknown in runs of earlier versions."""
    host: str = ""
    pid: int = 0

    @property
    def is_gone(self) -> bool:
        """Whether its process is known to be gone, whoever may have its number now."""
        if self.owner is None:
            return self.host == socket.gethostname() and process_start(self.pid) is None
        return self.owner.state() == "orphaned"


class Code(Record):
    """Which cuarl it was."""

    version: str
    commit: str | None = None
    dirty: bool | None = None
    """Whether the checkout differed from the commit; the difference is in ``source.diff``."""


class Machine(Record):
    """What it ran on."""

    python: str
    platform: str
    cpus: int
    gpus: tuple[str, ...] = ()
    """Name and driver of each."""
    packages: Mapping[str, str] = Field(default_factory=dict)
    """Versions of those that decide results."""


class Manifest(Record):
    """The whole of it."""

    schema_version: int = 1
    run_id: str
    name: str
    kind: Kind
    status: Status = "created"
    exit_code: int | None = None
    created_at: str
    ended_at: str | None = None
    config_digest: str
    seed: int
    model_name: str
    model_revision: str | None = None
    """The resolved commit of the base model, where it has one."""
    tasks_digest: str | None = None
    """Digest of the tasks that were selected; the tasks themselves are in ``tasks.json``."""
    parent: str | None = None
    """Checkpoint that the weights started from."""
    code: Code
    machine: Machine
    counts: Mapping[str, int] = Field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()

    @property
    def last_started_at(self) -> str:
        """When the newest attempt began, or when the run was made."""
        return self.attempts[-1].started_at if self.attempts else self.created_at


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run directory. Raises CuarlError if it is broken."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # of pydantic's, or no UTF-8
        raise CuarlError(f"can't read the run's manifest: {_first_line(error)}", where=str(path)) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a run directory atomically."""
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
