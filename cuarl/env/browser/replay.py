"""Recorded answers in the place of servers: what an episode asks for, where it stands, and what was answered there.

An answer depends on what was done before. So a request is found by its method, address and body, and by what went
before it in its recording, as ``after`` says:

``writes``
    the same requests that change something (all but GET, HEAD, OPTIONS), in the same order;
``loads``
    these, and the same pages loaded: for applications that change something by a GET, too;
``nothing``
    whatever went before.

Styles, scripts, pictures and fonts are the same anywhere. The n-th equal request at one place gets the n-th answer, and
those beyond the last one get the last. What is not found is missing: an answer of some other place could show what is
not so, and a verdict on it would be wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin

from cuarl.env.browser.har import SAFE, SESSION, Answer, Asked, Recording, all_values, body_digest, plain_url
from cuarl.env.browser.options import After
from cuarl.errors import EnvError

MOST_REDIRECTS = 20
_MOVED = (301, 302, 303, 307, 308)
_SAME_ANYWHERE = re.compile(r"^(text/css|image/|font/|audio/|video/|application/(wasm|font))|javascript|woff")
_NOT_SENT = re.compile(r"^:|^(content-(encoding|length)|transfer-encoding|connection|keep-alive|set-cookie)$")
_EXPIRES = re.compile(r";\s*expires=([^;]*)", re.IGNORECASE)
_FORWARD = "<!doctype html><script>location.replace(%s)</script>"

Place = tuple[str, str, Asked]
"""Beginning, digest of what went before, and what is asked."""


class Missing(EnvError):
    """Nothing was recorded of this."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a page is given."""

    status: int
    """Below 100 where nothing is to come."""
    headers: Mapping[str, str]
    body: bytes


class Recordings:
    """All recordings of a run, found by place. Nothing changes after it is made."""

    def __init__(self, recordings: Sequence[Recording], after: After) -> None:
        self.after = after
        self.where = str(recordings[0].path.parent if len(recordings) > 1 else recordings[0].path)
        self._answers: dict[Place, list[Answer]] = {}
        self._assets: dict[Asked, Answer] = {}
        self._states: dict[tuple[str, str], list[bytes]] = {}
        self._known: set[Asked] = set()
        self._began: dict[str, datetime] = {}
        for recording in recordings:
            self._add(recording)

    def replay(self, start: str, session: str) -> Replay:
        """For one episode. Raises Missing if none of the recordings begins as it does."""
        start = "" if self.after == "nothing" else start
        starts = [one for one in dict.fromkeys((start, "")) if one in self._began]
        if not starts:
            raise Missing(
                "no recording begins as this episode does, with this page, seed and set",
                where=self.where,
                hint="record it with --browser-har-record, or: --browser-har-after nothing",
            )
        return Replay(self, starts, session)

    def began(self, starts: Sequence[str]) -> datetime:
        """When the first of these recordings was made."""
        return min(self._began[start] for start in starts)

    def find(self, starts: Sequence[str], history: str, asked: Asked, number: int) -> Answer | None:
        """The answer to the ``number``-th such request at this place, from 0."""
        for start in starts:
            if found := self._answers.get((start, history, asked)):
                return found[min(number, len(found) - 1)]
        return self._assets.get(asked)

    def states(self, starts: Sequence[str], history: str) -> list[bytes]:
        """All that the application said of its state at this place."""
        return [state for start in starts for state in self._states.get((start, history), [])]

    def knows(self, asked: Asked) -> bool:
        """Whether it was recorded at some other place."""
        return asked in self._known

    def follow(self, history: str, asked: Asked, *, opens_page: bool) -> str:
        """What has gone before, once this is asked."""
        acts = asked.method not in SAFE or (self.after == "loads" and opens_page)
        if self.after == "nothing" or not acts:
            return history
        return hashlib.sha256(f"{history}\n{asked.method} {asked.url} {asked.body}".encode()).hexdigest()

    def _add(self, recording: Recording) -> None:
        start = "" if self.after == "nothing" else recording.start
        self._began[start] = min(recording.began, self._began.get(start, recording.began))
        found: dict[Place, list[Answer]] = {}
        history = ""
        for entry in recording.entries:
            if entry.state:
                self._states.setdefault((start, history), []).append(entry.answer.body(SESSION))
                continue
            # a page is asked for where the one before it is shown
            found.setdefault((start, history, entry.asked), []).append(entry.answer)
            history = self.follow(history, entry.asked, opens_page=entry.opens_page)
            self._known.add(entry.asked)
            if entry.answer.status == 200 and _SAME_ANYWHERE.search(entry.answer.kind):
                self._assets.setdefault(entry.asked, entry.answer)
        for place, answers in found.items():
            if len(answers) > len(self._answers.get(place, [])):
                self._answers[place] = answers


@dataclass(slots=True)
class Replay:
    """Where one episode stands."""

    recordings: Recordings
    starts: Sequence[str]
    session: str
    _history: str = ""
    _counts: Counter[tuple[str, Asked]] = field(default_factory=Counter)

    @property
    def began(self) -> datetime:
        """The moment that pages should take for the present at the beginning."""
        return self.recordings.began(self.starts)

    def answer(self, method: str, url: str, body: bytes, kind: str, *, opens_page: bool) -> Response:
        """What a page that asks for this is given. ``kind`` is the body's MIME type. Raises Missing.

        Where a page is sent on it is sent on by a script, as Playwright lets no redirect pass; other requests are
        given what is at the end.
        """
        asked = Asked(method.upper(), plain_url(url, self.session), body_digest(body, kind, self.session))
        cookies: list[str] = []
        for _ in range(MOST_REDIRECTS):
            answer = self._next(asked, opens_page=opens_page)
            cookies += all_values(answer.headers, "set-cookie")
            location = next(all_values(answer.headers, "location"), "")
            if answer.status not in _MOVED or not location:
                return self._response(answer, cookies)
            url = urljoin(url, location.replace(answer.session, self.session) if answer.session else location)
            kept = answer.status in (307, 308) and asked.method not in SAFE
            if opens_page and not kept:
                return self._forward(url, cookies)
            asked = Asked(asked.method if kept else "GET", plain_url(url, self.session), asked.body if kept else "")
        raise Missing(f"the recording sends {asked} on and on", where=self.recordings.where)

    def state(self) -> bytes:
        """What the application said of its state, where the episode stands. Raises Missing if that is not sure."""
        states = {_canonical(state): state for state in self.recordings.states(self.starts, self._history)}
        if len(states) == 1:
            return next(iter(states.values())).replace(SESSION.encode(), self.session.encode())
        if not states:
            raise Missing(
                "the application's state was not recorded after what this episode has done",
                where=self.recordings.where,
                hint="record an episode that does the same, with --browser-har-record",
            )
        raise Missing(
            "the application's state was recorded, and was not the same each time after the same requests",
            where=self.recordings.where,
            hint="--browser-har-after loads, as loading a page changes it",
        )

    def _next(self, asked: Asked, *, opens_page: bool) -> Answer:
        number = self._counts[self._history, asked]
        answer = self.recordings.find(self.starts, self._history, asked, number)
        if answer is None:
            other = self.recordings.knows(asked)
            raise Missing(
                f"the recording has no answer to {asked}" + (" after what this episode has done" if other else ""),
                where=self.recordings.where,
                hint="record it (--browser-har-record), or: --browser-har-missing block, or network"
                + (", or: --browser-har-after nothing" if other else ""),
            )
        self._counts[self._history, asked] += 1
        self._history = self.recordings.follow(self._history, asked, opens_page=opens_page)
        return answer

    def _response(self, answer: Answer, cookies: list[str]) -> Response:
        headers: dict[str, str] = {}
        for name, value in answer.headers:
            if not _NOT_SENT.search(name.lower()):
                headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
        if answer.kind:
            headers.setdefault("content-type", answer.kind)
        try:
            body = answer.body(self.session)
        except OSError as error:
            raise Missing(f"the recording lacks a file: {error.strerror}", where=str(answer.content)) from error
        return Response(answer.status, headers | self._cookies(cookies), body)

    def _forward(self, url: str, cookies: list[str]) -> Response:
        script = _FORWARD % json.dumps(url).replace("<", "\\u003c")
        return Response(200, {"content-type": "text/html"} | self._cookies(cookies), script.encode())

    def _cookies(self, cookies: list[str]) -> dict[str, str]:
        return {"set-cookie": "\n".join(self._lasting(one) for one in cookies)} if cookies else {}

    def _lasting(self, cookie: str) -> str:
        """A cookie without a date that was in the future when it was recorded."""
        told = _EXPIRES.search(cookie)
        try:
            ends = parsedate_to_datetime(told[1]) if told else None
        except ValueError:
            return cookie
        if ends is None:
            return cookie
        ends = ends if ends.tzinfo else ends.replace(tzinfo=UTC)
        return _EXPIRES.sub("", cookie) if ends > self.began else cookie


def _canonical(state: bytes) -> str:
    try:
        return json.dumps(json.loads(state), sort_keys=True)
    except ValueError:
        return state.decode("utf-8", "replace")
