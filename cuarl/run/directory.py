"""A run directory in use: made or reopened, locked while it is written, and marked with how it ended."""

from __future__ import annotations

import logging
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from cuarl.config.load import Resolved
from cuarl.config.show import as_json
from cuarl.errors import BarMissed, ConfigError, CuarlError, RunExists
from cuarl.run import facts
from cuarl.run.atomic import point, write_text
from cuarl.run.checkpoints import newest
from cuarl.run.log import RunLog
from cuarl.run.lookup import new_name, slug
from cuarl.run.manifest import MANIFEST, Attempt, Kind, Manifest, Status, read_manifest, write_manifest
from cuarl.run.owner import Owner
from cuarl.run.reserve import give_back, set_aside
from cuarl.run.resume import check_resume
from cuarl.safe_text import escaped, loggable, masked, printable

logger = logging.getLogger(__name__)

_LONGEST_NAME = 200
"""Bytes. File systems take 255, and other names are made of this one."""


def utc_now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


class Run:
    """A run directory. ``with`` holds its lock, logs into it, and writes how it ended into the manifest."""

    def __init__(self, path: Path, *, command: Sequence[str] = (), clock: Callable[[], datetime] = utc_now) -> None:
        """Refer to the directory at ``path``, which must have a manifest; nothing is written."""
        self.path = path
        self.manifest = read_manifest(path)
        self._command, self._clock = tuple(escaped(masked(word)) for word in command), clock
        self._lock = FileLock(path / ".lock")
        self._log: RunLog | None = None

    @classmethod
    def create(
        cls,
        runs_dir: Path,
        resolved: Resolved,
        *,
        kind: Kind = "train",
        name: str | None = None,
        actor: str | None = None,
        overwrite: bool = False,
        forget: Callable[[str], None] = lambda _run_id: None,
        command: Sequence[str] = (),
        clock: Callable[[], datetime] = utc_now,
    ) -> Self:
        """Make a run directory. Raises RunExists if the name is taken, ConfigError if it is no name.

        Without a name one is made of the tasks and of ``actor``, who acts if it is not the model. With ``overwrite`` a
        run of that name is deleted first, after ``forget`` has been called with its id: if that raises, the folder
        stays.
        """
        config, now = resolved.config, clock()
        elsewhere = config.env.type if config.env.type != "sim" else "all"
        name = name or new_name(config.tasks[0] if config.tasks else elsewhere, actor or config.model_name, now)
        path = cls.check_name(runs_dir, name, overwrite=True)
        if overwrite and path.exists():
            _delete(path, runs_dir, forget)
        try:
            path.mkdir(parents=True)
        except FileExistsError as error:
            raise _taken(path) from error
        try:
            cls._write_new(path, resolved, kind, _stamp(now))
        except OSError:  # a folder that is no run would only be in the way
            shutil.rmtree(path, ignore_errors=True)
            raise
        return cls(path, command=command, clock=clock)

    @staticmethod
    def check_name(runs_dir: Path, name: str, *, overwrite: bool = False) -> Path:
        """Where a run of that name would lie. Raises ConfigError if it is no name, and RunExists if it is taken."""
        if not _is_name(name):
            raise ConfigError(f'"{name}" is no name for a run', where="--name", hint=f"--name {slug(name) or 'mine'}")
        path = runs_dir / name
        if path.exists() and not overwrite:
            raise _taken(path)
        return path

    @staticmethod
    def _write_new(path: Path, resolved: Resolved, kind: Kind, now: str) -> None:
        config = resolved.config
        manifest = Manifest(
            run_id=secrets.token_hex(8),
            name=path.name,
            kind=kind,
            created_at=now,
            config_digest=config.digest,
            seed=config.seed,
            model_name=config.model_name,
            parent=config.load_checkpoint_path,
            code=facts.code(),
            machine=facts.machine(),
        )
        _write_config(path, resolved)
        _write_difference(path, manifest)
        # the manifest comes last: a folder without one is no run
        write_manifest(path, manifest)

    @classmethod
    def reopen(
        cls,
        path: Path,
        resolved: Resolved,
        *,
        command: Sequence[str] = (),
        clock: Callable[[], datetime] = utc_now,
    ) -> Self:
        """Go on with a run.

        Raises ResumeMismatch if the configuration differs in what decides the outcome, and CheckpointError if the run
        has checkpoints and none of them can be gone on from.
        """
        check_resume(path, resolved.config)
        run = cls(path, command=command, clock=clock)
        newest(run.checkpoints_dir, finished=run.manifest.counts.get("steps", 0))
        run._hold()
        try:
            _write_config(path, resolved)
            run.update(config_digest=resolved.config.digest)
        finally:
            run._lock.release()
        return run

    @property
    def name(self) -> str:
        """Its name, which is also the folder's."""
        return self.path.name

    @property
    def run_id(self) -> str:
        """Its id in the store."""
        return self.manifest.run_id

    @property
    def config_path(self) -> Path:
        """The resolved configuration."""
        return self.path / "config.json"

    @property
    def metrics_path(self) -> Path:
        """Metrics as JSON lines."""
        return self.path / "metrics.jsonl"

    @property
    def events_path(self) -> Path:
        """Events as JSON lines."""
        return self.path / "events.jsonl"

    @property
    def checkpoints_dir(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def evals_dir(self) -> Path:
        """Folder of the evaluations."""
        return self.path / "evals"

    @property
    def log_path(self) -> Path:
        """Log of the newest attempt."""
        return self.path / "logs" / f"attempt-{max(1, len(self.manifest.attempts)):03d}" / "cuarl.log"

    @property
    def status(self) -> Status:
        """How it stands: a run that says it is running, but whose process is gone, was killed."""
        manifest = read_manifest(self.path)
        last = manifest.attempts[-1] if manifest.attempts else None
        return "killed" if manifest.status == "running" and last and last.is_gone else manifest.status

    def update(self, **fields: object) -> None:
        """Change fields of the manifest, on disk at once."""
        self.manifest = Manifest.model_validate(self.manifest.model_dump() | fields)
        write_manifest(self.path, self.manifest)

    def note_tasks(self, digest: str) -> None:
        """Say which tasks the run, and its present attempt, is about."""
        attempts = self.manifest.attempts
        if self._log is not None:  # entered: the last attempt is this one
            attempts = (*attempts[:-1], attempts[-1].model_copy(update={"tasks_digest": digest}))
        self.update(tasks_digest=digest, attempts=attempts)

    def count(self, counts: Mapping[str, int]) -> None:
        """Set counts such as ``episodes`` in the manifest."""
        self.update(counts={**self.manifest.counts, **counts})

    def __enter__(self) -> Self:
        """Take the lock, open a new attempt and start its log. Raises RunExists while another process has the run."""
        self._hold()
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            set_aside(self.path)
            self._begin_attempt()
            undo.pop_all()
        return self

    def _begin_attempt(self) -> None:
        self.manifest = read_manifest(self.path)
        now = _stamp(self._clock())
        earlier = tuple(_closed(attempt) for attempt in self.manifest.attempts)
        attempt = Attempt(
            number=len(earlier) + 1,
            started_at=now,
            command=self._command,
            config_digest=self.manifest.config_digest,
            owner=(owner := Owner.me()),
            host=owner.host,
            pid=owner.pid,
        )
        self.update(status="running", exit_code=None, ended_at=None, attempts=(*earlier, attempt))
        self._start_log()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write how it ended, with the traceback in the log, and let go."""
        with ExitStack() as last_steps:
            last_steps.callback(self._lock.release)
            last_steps.callback(self._stop_log)
            give_back(self.path)
            try:
                self._end_attempt(error)
            except OSError as late:
                if error is None:
                    raise
                error.add_note(f"how the run ended can't be written: {late}")
            if error is not None and outcome(error)[0] == "failed":
                self._log_failure(error)
                error.add_note(f"log: {self.log_path}")

    def _end_attempt(self, error: BaseException | None) -> None:
        status, code = outcome(error)
        now = _stamp(self._clock())
        said = loggable(str(error)).splitlines()[0] if status == "failed" and str(error) else None
        end = {"ended_at": now, "status": status, "exit_code": code}
        *earlier, last = self.manifest.attempts
        self.update(attempts=(*earlier, last.model_copy(update={**end, "error": said})), **end)

    def close_killed(self) -> None:
        """Write that its process was killed, unless another process has taken the run up by now."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return
        try:
            if self.status == "killed":
                self.manifest = read_manifest(self.path)
                attempts = tuple(_closed(attempt) for attempt in self.manifest.attempts)
                self.update(status="killed", attempts=attempts)
        finally:
            self._lock.release()

    def _hold(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            last = read_manifest(self.path).attempts[-1:]
            who = f" by process {last[0].pid} on {last[0].host}" if last else ""
            raise RunExists(f'run "{self.name}" is in use{who}', where=str(self.path), hint="--name NAME") from error

    def _log_failure(self, error: BaseException) -> None:
        """Into the file alone: on the screen the error itself is enough."""
        if self._log is not None:
            exc_info = (type(error), error, error.__traceback__)
            record = logger.makeRecord(logger.name, logging.ERROR, __file__, 0, "the run failed", (), exc_info)
            self._log.handle(record)

    def _start_log(self) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        point(self.path / "logs" / "latest", self.log_path.parent.name)
        self._log = RunLog(self.log_path)
        logging.getLogger().addHandler(self._log)

    def _stop_log(self) -> None:
        if self._log is not None:
            logging.getLogger().removeHandler(self._log)
            self._log.close()
            self._log = None


def _is_name(name: str) -> bool:
    """Whether a folder can have this name, and people can read and type it."""
    plain = printable(name) == name and name.isprintable() and name == name.strip()
    usual = name not in ("", ".", "..", "latest") and not set(name) & set("/\\") and not name.startswith("-")
    return plain and usual and len(name.encode(errors="replace")) <= _LONGEST_NAME


def _taken(path: Path) -> RunExists:
    if not (path / MANIFEST).is_file():
        return RunExists("the folder exists and is not a run", where=str(path), hint="--name NAME")
    manifest = read_manifest(path)
    episodes = manifest.counts.get("episodes")
    has = f"already has {episodes} episodes" if episodes else f"already exists ({manifest.status})"
    resume = f"--resume {path.name} to resume it, " if manifest.kind == "train" else ""
    return RunExists(
        f'run "{path.name}" {has}',
        where=str(path),
        hint=f"{resume}--name NAME for a new run, or --overwrite to start again",
    )


def delete_folder(path: Path, runs_dir: Path, run_id: str) -> None:
    """Remove the folder of a run, if it is that run's. Raises RunLocked while somebody works on it."""
    if (path / MANIFEST).is_file() and read_manifest(path).run_id == run_id:
        _delete(path, runs_dir, lambda _run_id: None)


def _delete(path: Path, runs_dir: Path, forget: Callable[[str], None]) -> None:
    if path.resolve().parent != runs_dir.resolve() or not (path / MANIFEST).is_file():
        raise RunExists("only a run in the runs folder can be overwritten", where=str(path), hint="--name NAME")
    run = Run(path)
    run._hold()
    try:
        forget(run.run_id)
        shutil.rmtree(path)
    finally:
        run._lock.release()


def _write_config(path: Path, resolved: Resolved) -> None:
    write_text(path / "config.json", as_json(resolved.config))
    outside = [file for file in resolved.files if file.resolve() != (path / "config.json").resolve()]
    if outside:
        (path / "config.source").mkdir(exist_ok=True)
    for number, file in enumerate(outside, start=1):
        shutil.copyfile(file, path / "config.source" / f"{number:02d}-{file.name}")


def _write_difference(path: Path, manifest: Manifest) -> None:
    patch = facts.difference() if manifest.code.dirty else None
    if patch:
        write_text(path / "source.diff", masked(patch) + "\n")


def _closed(attempt: Attempt) -> Attempt:
    """An earlier attempt that never said how it ended was killed."""
    return attempt.model_copy(update={"status": "killed"}) if attempt.status == "running" else attempt


def outcome(error: BaseException | None) -> tuple[Status, int]:
    """How a run ended that was left with this exception: its status and its exit code."""
    if error is None:
        return "success", 0
    if isinstance(error, BarMissed):  # the work itself was done
        return "success", error.exit_code
    if isinstance(error, CuarlError):
        return "failed", error.exit_code
    if isinstance(error, Exception):
        return "failed", 1
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return "success", 0
    return "cancelled", 130


def _stamp(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")
