"""Recording an episode's HTTP, for ``har`` to be replayed: Playwright writes it, and what guards accounts is taken out.

No request's headers are kept, of what was sent only a digest, and no cookie that pages can't read. What pages show, and
their addresses, are in the file.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cuarl.env.browser.har import STATE, TOLD, body_digest, sent
from cuarl.errors import EnvError

_NAME = "episode.har"
_REFUSED = "ERR_BLOCKED_BY_CLIENT"


class HarRecorder:
    """The recording of one episode, which ends in ``folder``."""

    def __init__(self, folder: Path, start: str, session: str) -> None:
        self._folder, self._start, self._session = folder, start, session
        self._raw = Path(tempfile.mkdtemp(prefix="cuarl-har-"))
        self._states: list[tuple[datetime, bytes]] = []

    @property
    def options(self) -> dict[str, Any]:
        """For the context whose pages are recorded."""
        return {"record_har_path": self._raw / _NAME, "record_har_mode": "minimal", "record_har_content": "attach"}

    def note_state(self, state: bytes) -> None:
        """The application has said that its state is this, in JSON."""
        self._states.append((datetime.now(UTC), state))

    def keep(self, name: str) -> None:
        """Put the recording into its folder, once the context is closed. Raises EnvError if there is none."""
        try:
            log = json.loads((self._raw / _NAME).read_text(encoding="utf-8"))["log"]
            log[TOLD] = {"start": self._start, "session": self._session}
            entries = [
                self._clean(entry)
                for entry in log["entries"]
                if _REFUSED not in entry["response"].get("_failureText", "")
            ]
            entries += [_state_entry(when, state) for when, state in self._states]
            log["entries"] = sorted(entries, key=lambda entry: _moment(entry["startedDateTime"]))
            self._folder.mkdir(parents=True, exist_ok=True)
            for entry in entries:
                self._move(entry["response"]["content"].get("_file"))
            file = self._folder / f"{name}-{secrets.token_hex(3)}.har"
            part = file.with_suffix(".part")
            part.write_text(json.dumps({"log": log}), encoding="utf-8")
            part.replace(file)
        except (OSError, ValueError, KeyError) as error:
            raise EnvError(f"the episode's HTTP was not recorded: {error}", where=str(self._folder)) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Delete what is not kept."""
        shutil.rmtree(self._raw, ignore_errors=True)

    def _move(self, name: str | None) -> None:
        """Bodies are named by their digest, so one that is there already is the same."""
        source = self._raw / str(name)
        if name and source.is_file():
            source.chmod(0o644)
            shutil.move(source, self._folder / str(name))

    def _clean(self, entry: dict[str, Any]) -> dict[str, Any]:
        request, response = entry["request"], entry["response"]
        if request.get("postData"):
            kind = str(request["postData"].get("mimeType") or "")
            digest = body_digest(sent(request, self._raw), kind, self._session)
            request["postData"] = {"mimeType": kind, "text": "", "params": [], "_sha256": digest}
        request["headers"] = request["cookies"] = []
        response["cookies"] = []
        response["headers"] = [header for header in response["headers"] if not _hidden(header)]
        return entry


def _hidden(header: Mapping[str, str]) -> bool:
    return header["name"].lower() == "set-cookie" and "httponly" in header["value"].lower()


def _state_entry(when: datetime, state: bytes) -> dict[str, Any]:
    """What the application said, as an entry of a request that no page made."""
    nothing: dict[str, Any] = {"cookies": [], "headers": [], "headersSize": -1, "bodySize": -1, "httpVersion": ""}
    content = {"size": len(state), "mimeType": "application/json", "text": state.decode("utf-8", "replace")}
    return {
        "startedDateTime": when.isoformat(timespec="milliseconds"),
        "time": -1,
        "request": {**nothing, "method": "GET", "url": "http://state.invalid/", "queryString": []},
        "response": {**nothing, "status": 200, "statusText": "OK", "redirectURL": "", "content": content},
        "cache": {},
        "timings": {"send": -1, "wait": -1, "receive": -1},
        STATE: True,
    }


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
