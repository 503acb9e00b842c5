"""The ledger of what outlives a crash: browsers, displays, boxes, pods, devices.

A backend writes a lease *before* it uses such a thing and releases it once the thing is gone. What a killed process
left behind is thus on record, and ``cuarl sessions sweep`` ends it. The ledger is a folder of small JSON files, one a
lease, each there whole or not at all. A lease names its owner by process id *and* start time, so that a live owner is
never robbed, and a process id that has been given to somebody else does not protect what is left. Secrets stay out of
it: known ones are masked, and a sweeper is handed the settings, which have its credentials.

A backend adds a sweeper in the module that ``SWEEPER_MODULES`` names for its kind::

    async def sweep_browser(lease: Lease, settings: Settings) -> None:
        "End what the lease stands for; do nothing if it is gone. Raises EnvError if that can't be done."

    SWEEPERS["browser"] = sweep_browser
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import ValidationError

from cuarl.errors import EnvError, PrerequisiteError
from cuarl.run.atomic import write_text
from cuarl.run.owner import Owner, State
from cuarl.safe_text import masked
from cuarl.settings import Settings
from cuarl.types import Record

logger = logging.getLogger(__name__)

LOCK = ".claims.lock"
"""Held in the ledger's folder while a claim is decided."""


class LeaseRecord(Record):
    """What the ledger keeps of a lease."""

    version: Literal[1] = 1
    kind: str
    id: str
    detail: Mapping[str, str]
    owner: Owner
    made_at: str
    """ISO time, UTC."""


class Lease:
    """One thing that is in use, or was left behind. ``with`` releases it."""

    def __init__(self, path: Path, record: LeaseRecord) -> None:
        """Refer to the lease at ``path``; nothing is written."""
        self.path, self.record = path, record

    @property
    def kind(self) -> str:
        """Kind of thing, which names its sweeper: ``display``, ``browser``, ``box`` …."""
        return self.record.kind

    @property
    def id(self) -> str:
        """What the thing is called, unique within its kind."""
        return self.record.id

    @property
    def detail(self) -> Mapping[str, str]:
        """What its sweeper needs to know."""
        return self.record.detail

    @property
    def state(self) -> State:
        """Whether its owner lives."""
        return self.record.owner.state()

    def note(self, **detail: str) -> None:
        """Add to ``detail`` what became known since, such as a process id; on disk at once."""
        kept = {name: masked(value) for name, value in detail.items()}
        self.record = self.record.model_copy(update={"detail": {**self.record.detail, **kept}})
        _write(self.path, self.record)

    def release(self) -> None:
        """Strike it from the ledger: the thing is gone. Safe to call twice."""
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Lease:
        """The lease, released at the end."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Release it."""
        self.release()


class Ledger:
    """The leases of this user on this machine, in ``folder`` (``Settings.sessions_folder``)."""

    def __init__(self, folder: Path) -> None:
        """Refer to the folder, which is made when the first lease is written."""
        self.folder = folder

    def hold(self, kind: str, id: str, detail: Mapping[str, str] | None = None) -> Lease:
        """Write a lease, before the thing it stands for is made or used.

        Raises PrerequisiteError if the folder can't be written, since a crash would then leave things behind unseen.
        """
        record = LeaseRecord(
            kind=kind,
            id=masked(id),
            detail={name: masked(value) for name, value in (detail or {}).items()},
            owner=Owner.me(),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        path = self.folder / f"{kind}-{secrets.token_hex(8)}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _write(path, record)
        except OSError as error:
            raise self._unwritable(error) from error
        return Lease(path, record)

    def claim(self, kind: str, id: str, detail: Mapping[str, str] | None = None) -> Lease | None:
        """``hold`` for a thing that only one may use at a time: None if there is a lease of that kind and id already.

        Two processes never both get one. Raises PrerequisiteError as ``hold`` does.
        """
        with self._lock():
            if any(lease.kind == kind and lease.id == masked(id) for lease in self.leases()):
                return None
            return self.hold(kind, id, detail)

    def _lock(self) -> FileLock:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unwritable(error) from error
        return FileLock(self.folder / LOCK)

    def _unwritable(self, error: OSError) -> PrerequisiteError:
        return PrerequisiteError(
            f"can't note a session: {error.strerror}", where=str(self.folder), hint="export CUARL_SESSIONS_DIR=FOLDER"
        )

    def leases(self) -> list[Lease]:
        """All leases, oldest first. A file that can't be read is warned of and left alone."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(Lease(path, LeaseRecord.model_validate_json(path.read_text(encoding="utf-8"))))
            except FileNotFoundError:  # released just now
                continue
            except (OSError, ValidationError):
                logger.warning("%s is not a lease that this version can read; it is left alone", path)
        return sorted(found, key=lambda lease: (lease.record.made_at, lease.kind, lease.id))


Sweeper = Callable[[Lease, Settings], Awaitable[None]]

SWEEPERS: dict[str, Sweeper] = {}
"""By the kind of lease: ends what a lease stands for, and returns once it is gone (also if it was gone before)."""

SWEEPER_MODULES: dict[str, str] = {
    "adb": "cuarl.env.adb.lease",
    "display": "cuarl.env.linux.session",
    "browser": "cuarl.env.browser.lease",
    "gbox": "cuarl.env.gbox.lease",
    "gym": "cuarl.env.gym.lease",
    "worker": "cuarl.env.workers.lease",
    "program": "cuarl.env.program.lease",
    "pod": "cuarl.env.pods.lease",
}
"""By the kind of lease: the module that puts its sweeper into ``SWEEPERS`` when it is imported."""


def sweeper(kind: str) -> Sweeper:
    """The sweeper of a kind. Raises EnvError if there is none (a newer version of cuarl may have it)."""
    if kind not in SWEEPERS and kind in SWEEPER_MODULES:
        import_module(SWEEPER_MODULES[kind])
    if kind not in SWEEPERS:
        raise EnvError(f'this version cannot end a session of kind "{kind}"', hint="update cuarl")
    return SWEEPERS[kind]


async def sweep(lease: Lease, settings: Settings) -> None:
    """End what the lease stands for, and strike it from the ledger. Raises what the sweeper raises; it then stays."""
    await finish(lease, lambda found: sweeper(found.kind)(found, settings))


async def finish(lease: Lease, end: Callable[[Lease], Awaitable[None]]) -> None:
    """``end`` the lease and strike it from the ledger. Raises what ``end`` raises; it then stays.

    A lease that does not say what it stands for ends nothing: raises EnvError.
    """
    if not lease.id.strip():
        raise EnvError("the lease has no id, so nothing is ended", where=str(lease.path), hint=f"rm {lease.path}")
    try:
        await end(lease)
    except (KeyError, ValueError) as error:
        raise EnvError(f"the lease is damaged: {error}", where=str(lease.path), hint=f"rm {lease.path}") from error
    lease.release()


def _write(path: Path, record: LeaseRecord) -> None:
    write_text(path, record.model_dump_json(indent=2) + "\n")
