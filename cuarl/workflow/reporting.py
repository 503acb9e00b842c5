"""Reports a run to a training monitor elsewhere: everything is written to a file of the run first, and sent from there.

So training never waits for the monitor, and what it could not take (it was away, the run was killed) is sent later:
while the run goes on, when it is resumed, or by ``cuarl monitor send``. Rows are known by ids of the sender, so one
that may have arrived is sent again.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx

from cuarl.errors import ConfigError, MissingSecret, StoreError
from cuarl.evaluate.suite import Evaluation
from cuarl.run.atomic import write_text
from cuarl.safe_text import loggable
from cuarl.trajectory import Trajectory
from cuarl.workflow.reports import PICTURE, Item, Reports, moment

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig
    from cuarl.run import Run
    from cuarl.settings import Settings
    from cuarl.store.blobs import Blobs

logger = logging.getLogger(__name__)

SPOOL, SENT = "monitor-spool.jsonl", "monitor-sent.json"
"""Files of a run: what is to be reported, and how far the monitor has it."""
PATIENCE_S = 20.0
"""What sending the rest may take at the end of a run."""
_TIMEOUT_S = 120.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0
_ROWS, _BYTES = 200, 8 << 20
_LIMIT_BYTES = 1 << 30
_POLL_S = 1.0
_LAST_TRIES = 4
"""At the end of a run, in a row; a monitor that was away for long has had them."""
_SHORT_LIVED = ("environments", "rollouts", "turns")
"""Kinds that only the rows right behind them refer to."""
_REFERRED = ("tasks", "steps", "baselines", "evals", *_SHORT_LIVED)
_MOST_KNOWN = 1000


def check_monitor(url: str, settings: Settings) -> None:
    """See that the monitor at ``url`` can be told of runs. Raises ConfigError for what is no address, MissingSecret."""
    if httpx.URL(url).scheme not in ("http", "https") or not httpx.URL(url).host:
        raise ConfigError(f"{url!r} is no address of a monitor", hint="--monitor-base-url https://monitor.example")
    if settings.project_token is None:
        raise MissingSecret(
            "a monitor wants the token of a project",
            where="MONITOR_PROJECT_TOKEN",
            hint="cuarl monitor tokens create NAME",
        )


def page(settings: Settings, number: int) -> str:
    """Where the monitor shows a run that it knows by a number."""
    base = (settings.monitor_base_url or "").rstrip("/")
    return f"{base}/{number}" + (f"?project_id={settings.project_id}" if settings.project_id else "")


class Spool:
    """What a run has to report, line by line, in a file that a process writes and reads at the same time."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock, self._full = folder / SPOOL, threading.Lock(), False
        self.news = threading.Event()
        if self._path.exists() and self._path.read_bytes()[-1:] != b"\n":  # a process was killed while it wrote
            with self._path.open("ab") as file:
                file.write(b"\n")

    def add(self, *items: Item) -> None:
        """Append rows. What finds the disk or the spool full is lost, with one warning."""
        line = "".join(f"{item.line()}\n" for item in items).encode("ascii")
        with self._lock:
            try:
                if self._path.exists() and self._path.stat().st_size + len(line) > _LIMIT_BYTES:
                    raise OSError(None, "the spool is full", str(self._path))
                with self._path.open("ab") as file:
                    file.write(line)
            except OSError as error:
                if not self._full:
                    logger.warning("the monitor is not told of everything: %s", error.strerror)
                self._full = True
        self.news.set()

    def after(self, offset: int) -> list[tuple[int, Item]]:
        """Rows behind an offset, each with the offset of its end: as many as one batch takes."""
        found: list[tuple[int, Item]] = []
        if not self._path.exists():
            return found
        with self._path.open("rb") as file:
            file.seek(offset)
            while len(found) < _ROWS and (line := file.readline()).endswith(b"\n"):
                offset += len(line)
                try:
                    found.append((offset, Item.read(line.decode("ascii"))))
                except (ValueError, LookupError, TypeError, AttributeError):  # cut off by a crash, and written on
                    continue
        return found


class Sender:
    """Sends a run's spool to the monitor, in order, and keeps how far it has come."""

    def __init__(self, folder: Path, settings: Settings, blobs: Blobs, spool: Spool) -> None:
        """``folder`` is the run's."""
        assert settings.project_token is not None
        self._spool, self._blobs, self._state = spool, blobs, folder / SENT
        self._url = f"{(settings.monitor_base_url or '').rstrip('/')}/api/ingest/batch"
        self._headers = {"authorization": f"Bearer {settings.project_token.get_secret_value()}"}
        self._offset, self._ids = 0, dict[str, dict[str, int]]()
        self._rows, self._end = list[Item](), 0  # read of the spool, and not all sent
        self._restore()
        self.refused = 0
        """Rows that the monitor would not take."""

    @property
    def number(self) -> int | None:
        """The number by which the monitor knows the run."""
        return next(iter(self._ids.get("training", {}).values()), None)

    @property
    def waiting(self) -> bool:
        """Whether there is something to send."""
        return bool(self._rows or self._spool.after(self._offset))

    def send(self, client: httpx.Client) -> bool:
        """Send one batch; False if there is nothing.

        Raises httpx.HTTPError if the monitor can't be reached, is not well, or does not know the token.
        """
        if not self._rows:
            found = self._spool.after(self._offset)
            if not found:
                return False
            self._rows, self._end = [item for _, item in found], found[-1][0]
        batch, later, lost = self._batch()
        if batch:
            answer = client.post(self._url, content=json.dumps(batch), headers=self._headers | _JSON)
            if answer.status_code >= 500 or answer.status_code in (401, 403, 408, 429):
                answer.raise_for_status()
            if answer.is_success:
                self._learn(batch, answer.json())
            else:
                self._refuse(batch, answer)
        self._rows, self.refused = later, self.refused + lost
        if not later:
            self._offset = self._end
            write_text(self._state, json.dumps({"url": self._url, "offset": self._offset, "ids": self._ids}))
        return True

    def _batch(self) -> tuple[dict[str, Any], list[Item], int]:
        """What can be sent now, what has to wait for numbers that this gives, and how many rows never can."""
        named = {(item.kind, item.client_id) for item in self._rows}
        ready: dict[tuple[str, str], dict[str, Any]] = {}
        later, size, lost = list[Item](), 0, 0
        for item in self._rows:
            unknown = [ref for ref in item.refs.values() if ref[1] not in self._ids.get(ref[0], {})]
            if size > _BYTES or any(ref in named for ref in unknown):
                later.append(item)
            elif unknown:  # what it belongs to was refused
                lost += 1
            else:
                refs = {name: self._ids[kind][other] for name, (kind, other) in item.refs.items()}
                data = self._with_picture({**item.data, **refs})
                size += len(data.get("screenshot_uri") or "") + 500
                # a row that comes twice is told once, as it was last
                ready[item.kind, item.client_id] = ready.get((item.kind, item.client_id), {}) | data
        batch: dict[str, Any] = {}
        for (kind, name), data in ready.items():
            if kind == "training":
                batch[kind] = data
            else:
                batch.setdefault(kind, []).append({**data, "client_id": name})
        return batch, later, lost

    def _with_picture(self, data: dict[str, Any]) -> dict[str, Any]:
        uri = data.get("screenshot_uri")
        if not isinstance(uri, str) or not uri.startswith(PICTURE):
            return data
        try:
            picture = base64.b64encode(self._blobs.png(uri.removeprefix(PICTURE))).decode("ascii")
        except StoreError:  # it was deleted meanwhile
            return data
        return {**data, "screenshot_uri": f"data:image/png;base64,{picture}"}

    def _learn(self, batch: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Note the numbers that the monitor has given. What it does not say stays unknown."""
        if isinstance(number := answer.get("training_id"), int) and "training" in batch:
            self._ids["training"] = {batch["training"]["run_name"]: number}
        for kind in _REFERRED:
            rows = answer.get(kind)
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict) and isinstance(row.get("id"), int) and row.get("client_id") is not None:
                    self._ids.setdefault(kind, {})[str(row["client_id"])] = row["id"]
        for kind in _SHORT_LIVED:
            known = self._ids.get(kind, {})
            self._ids[kind] = dict(list(known.items())[-_MOST_KNOWN:])

    def _refuse(self, batch: Mapping[str, Any], answer: httpx.Response) -> None:
        count = sum(len(rows) if isinstance(rows, list) else 1 for rows in batch.values())
        if not self.refused:
            logger.warning(
                "the monitor refused %d rows, and is told the rest: %d %s",
                count,
                answer.status_code,
                loggable(answer.text[:200]),
            )
        self.refused += count

    def _restore(self) -> None:
        """Go on where an earlier process was; from the start where that is not known, or was another monitor."""
        try:
            kept = json.loads(self._state.read_text(encoding="utf-8"))
            if kept["url"] == self._url:
                self._offset, self._ids = int(kept["offset"]), dict(kept["ids"])
        except (OSError, ValueError, LookupError, TypeError):
            self._offset, self._ids = 0, {}


_JSON = {"content-type": "application/json"}


class Reporter:
    """Tells a monitor of one run while it goes on. A ``types.Sink``; ``with`` says how the run ended."""

    def __init__(self, run: Run, config: ExperimentConfig, settings: Settings, blobs: Blobs) -> None:
        self._reports = Reports(run.name, run.run_id, config)
        self._spool = Spool(run.path)
        self._sender = Sender(run.path, settings, blobs, self._spool)
        self._settings, self._over, self._warned, self._name = settings, threading.Event(), False, run.name
        self._thread = threading.Thread(target=self._deliver, name="cuarl-reports", daemon=True)

    def __enter__(self) -> Reporter:
        self._spool.add(self._reports.begun(time.time()))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        at = time.time()
        status = "completed" if error is None else "failed" if isinstance(error, Exception) else "cancelled"
        said = loggable(str(error)).splitlines()[0] if error is not None and str(error) else None
        self._spool.add(self._reports.run(at, status=status, end_time=moment(at), error_message=said))
        self._over.set()
        self._spool.news.set()
        self._thread.join(PATIENCE_S)
        if self._sender.waiting:
            logger.warning("the monitor was not told of everything; later: cuarl monitor send %s", self._name)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Tell the metrics of a step."""
        self._tell(self._reports.measured(step, values, time.time()))

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """There is no place for events."""

    def close(self) -> None:
        """The run's end is told when it is left."""

    def episode(self, trajectory: Trajectory) -> None:
        """Tell a finished episode."""
        self._tell(self._reports.episode(trajectory))

    def evaluated(self, evaluation: Evaluation) -> None:
        """Tell an evaluation."""
        self._tell(self._reports.evaluated(evaluation))

    def _tell(self, items: Iterable[Item]) -> None:
        self._spool.add(*items)

    def _deliver(self) -> None:
        failures = 0
        with httpx.Client(timeout=_TIMEOUT_S) as client:
            while not (self._over.is_set() and not self._sender.waiting):
                self._spool.news.clear()
                try:
                    if not self._sender.send(client):
                        self._spool.news.wait(_POLL_S)
                    failures = 0
                except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
                    self._warn(error)
                    failures += 1
                    if self._over.is_set() and failures >= _LAST_TRIES:
                        return
                    wait = min(_FIRST_WAIT_S * 2 ** (failures - 1), _LONGEST_WAIT_S)
                    # the end of the run cuts a long wait short, and makes no haste of the last tries
                    time.sleep(wait) if self._over.is_set() else self._over.wait(wait)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            cause = (str(error).strip() or type(error).__name__).splitlines()[0]
            logger.warning("the monitor is told later, it does not answer well now: %s", loggable(cause))
        self._warned = True


def send_rest(folder: Path, settings: Settings, blobs: Blobs) -> int | None:
    """Send what a run still has to report; gives the number by which the monitor knows it.

    Raises StoreError if the monitor can't be reached.
    """
    sender = Sender(folder, settings, blobs, Spool(folder))
    with httpx.Client(timeout=_TIMEOUT_S) as client:
        try:
            while sender.send(client):
                pass
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            cause = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise StoreError(
                f"the monitor does not take the reports: {cause}", hint=f"cuarl monitor send {folder.name}"
            ) from error
    return sender.number
