"""Files of recorded HTTP (HAR 1.2): those that cuarl writes, and what other programs export.

Source of the format: http://www.softwareishard.com/blog/har-12-spec/. Bodies stand in the file (``content.text``) or,
as Playwright writes them with ``attach``, in files beside it (``content._file``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from cuarl.errors import ConfigError

STATE = "_cuarl_state"
"""Marks an entry that holds what the application said of its state, which no page asked for."""
TOLD = "_cuarl"
"""In a file's ``log``: of which beginning it is a recording (``start``) and the episode's ``$SESSION``."""
SESSION = "$SESSION"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods of requests that change nothing, as HTTP has it."""
_BOUNDARY = re.compile(r"boundary=\"?([^\";]+)", re.IGNORECASE)
_TEXTUAL = re.compile(r"^text/|json|javascript|xml|urlencoded")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for, so that it can be found again."""

    method: str
    url: str
    """Without a fragment; the episode's session stands as ``$SESSION``."""
    body: str = ""
    """SHA-256 of what was sent with it; empty if nothing was."""

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered."""

    status: int
    """Below 100 where nothing came."""
    headers: tuple[tuple[str, str], ...]
    kind: str
    """MIME type."""
    content: bytes | Path
    session: str = ""
    """What stands for ``$SESSION`` in it."""

    def body(self, session: str) -> bytes:
        """The body for an episode of this session. Raises OSError if its file is gone."""
        found = self.content.read_bytes() if isinstance(self.content, Path) else self.content
        if not (self.session and session and _TEXTUAL.search(self.kind)):
            return found
        return found.replace(self.session.encode(), session.encode())


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and its answer, in the order of the file."""

    asked: Asked
    answer: Answer
    opens_page: bool
    """Whether it loaded a page or a frame."""
    state: bool
    """Whether it is what the application said of its state."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One file."""

    path: Path
    start: str
    """Digest of what the recorded episode began with; empty where that is not told."""
    began: datetime
    entries: tuple[Entry, ...]


def read_folder(path: Path) -> list[Recording]:
    """The recordings of a file, or of all ``*.har`` in a folder, by name. Raises ConfigError."""
    files = sorted(path.glob("*.har")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        hint = f"cuarl rollout --env browser … --agent oracle --browser-har-record {path}"
        raise ConfigError("there is no recording", where=str(path), hint=hint)
    return [_read(file) for file in files]


def _read(path: Path) -> Recording:
    try:
        log = json.loads(path.read_text(encoding="utf-8-sig"))["log"]
        told = log.get(TOLD) or {}
        session = str(told.get("session", ""))
        entries = tuple(_entry(raw, session, path.parent) for raw in log["entries"] if _counts(raw))
        began = _time(log["entries"][0]["startedDateTime"]) if log["entries"] else datetime.now().astimezone()
        return Recording(path, str(told.get("start", "")), began, entries)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        what = f"{type(error).__name__}: {error}"
        raise ConfigError(f"this is no recording in the HAR format ({what})", where=str(path)) from error


def _counts(raw: Mapping[str, Any]) -> bool:
    """Whether there is an answer to give; of requests that change something it counts that they were made, too."""
    request = raw["request"]
    http = urlsplit(request["url"]).scheme in ("http", "https")
    return http and (raw["response"]["status"] >= 100 or str(request["method"]).upper() not in SAFE)


def _entry(raw: Mapping[str, Any], session: str, folder: Path) -> Entry:
    request, response = raw["request"], raw["response"]
    content = response.get("content") or {}
    headers = [(str(one["name"]), str(one["value"])) for one in response.get("headers") or []]
    redirect = str(response.get("redirectURL") or "")
    if redirect and not any(name.lower() == "location" for name, _ in headers):
        headers.append(("Location", redirect))
    kind = str(content.get("mimeType") or "")
    answer = Answer(int(response["status"]), tuple(headers), kind, _content(content, folder), session)
    asked = Asked(str(request["method"]).upper(), plain_url(request["url"], session), _body(request, session, folder))
    return Entry(asked, answer, _opens_page(raw, kind), bool(raw.get(STATE)))


def _opens_page(raw: Mapping[str, Any], kind: str) -> bool:
    told = raw.get("_resourceType")
    return told == "document" if told else kind.startswith("text/html")


def _content(content: Mapping[str, Any], folder: Path) -> bytes | Path:
    if content.get("_file"):
        return _beside(folder, str(content["_file"]))
    text = str(content.get("text") or "")
    return base64.b64decode(text) if content.get("encoding") == "base64" else text.encode("utf-8", "surrogatepass")


def _beside(folder: Path, name: str) -> Path:
    """A file that a recording names, which must lie in its folder. Raises ValueError."""
    if Path(name).name != name:
        raise ValueError(f"{name!r} is no file beside the recording")
    return folder / name


def _body(request: Mapping[str, Any], session: str, folder: Path) -> str:
    data = request.get("postData")
    if not data:
        return ""
    if "_sha256" in data:
        return str(data["_sha256"])
    return body_digest(sent(request, folder), str(data.get("mimeType") or ""), session)


def sent(request: Mapping[str, Any], folder: Path) -> bytes:
    """The body of a request in a file. Raises OSError or ValueError."""
    data = request.get("postData") or {}
    if data.get("_file"):
        return _beside(folder, str(data["_file"])).read_bytes()
    if data.get("text") or not data.get("params"):
        return str(data.get("text") or "").encode("utf-8", "surrogatepass")
    return urlencode([(one["name"], one.get("value", "")) for one in data["params"]]).encode()


def body_digest(body: bytes, kind: str, session: str) -> str:
    """What tells a request's body from others, whatever boundary a form's parts are given."""
    if not body:
        return ""
    if boundary := _BOUNDARY.search(kind):
        body = body.replace(boundary[1].encode(), b"boundary")
    return hashlib.sha256(body.replace(session.encode(), SESSION.encode()) if session else body).hexdigest()


def plain_url(url: str, session: str) -> str:
    """An address as recordings are searched for it: without a fragment, the session as ``$SESSION``."""
    parts = urlsplit(url)
    plain = urlunsplit(parts._replace(fragment="", path=parts.path or "/"))
    return plain.replace(session, SESSION) if session else plain


def start_digest(preset: Mapping[str, Any], seed: int) -> str:
    """What tells apart the beginnings of episodes: what their application is set to.

    The seed is part of it where the application is told it (``reset``).
    """
    told = {name: preset.get(name) for name in ("url", "set_url", "set")}
    text = json.dumps({**told, "seed": seed if preset.get("reset") else None}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def all_values(headers: tuple[tuple[str, str], ...], name: str) -> Iterator[str]:
    """The values of a header."""
    yield from (value for key, value in headers if key.lower() == name)
