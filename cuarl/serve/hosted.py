"""A service beside the episodes of one process: a policy for agents that run elsewhere, one session an episode.

It starts with the first conversation and runs in the event loop of its episodes, so that ids, log-probabilities and
pictures are handed over in memory, exactly as they were sampled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from cuarl.errors import CuarlError, SamplerError
from cuarl.policy.sampler import Sampler, SamplingParams
from cuarl.serve.listen import listening
from cuarl.trajectory import Trajectory, Turn
from cuarl.types import Screenshot, StopReason
from cuarl.web.listen import bind
from cuarl.web.rules import is_loopback

if TYPE_CHECKING:
    from cuarl.serve.app import Service
    from cuarl.serve.sessions import Sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen, and what the world calls that."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    url: str | None = None
    """Base URL by which agents reach it, if it is another."""
    token: str | None = None
    picture_hosts: tuple[str, ...] = ()


@dataclass(slots=True)
class _Heard:
    """What was recorded of one session."""

    turns: Sequence[Turn] = ()
    record: Trajectory | None = None
    """The session as it stands."""
    pictures: dict[str, Screenshot] = field(default_factory=dict)
    news: anyio.Event = field(default_factory=anyio.Event)


class Host:
    """Serves ``sampler`` as ``model``, always sampling with ``params``, whatever clients ask for."""

    def __init__(self, sampler: Sampler, model: str, params: SamplingParams, address: Address) -> None:
        self.model, self.key = model, address.token or "-"
        self._sampler, self._params, self._address = sampler, params, address
        self._heard: dict[str, _Heard] = {}
        self._url: asyncio.Future[str] | None = None
        self._stop: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._opened = 0
        self._sessions: Sessions | None = None

    def conversation(self, sampling_seed: int) -> Talk:
        """A session of its own, whose draws ``sampling_seed`` decides."""
        self._opened += 1
        return Talk(self, f"{self._opened}-{sampling_seed:x}", sampling_seed)

    async def url(self) -> str:
        """Its base URL, without ``/v1``; begins to serve if need be. Raises MissingSecret, PrerequisiteError."""
        if self._url is None:
            self._url = asyncio.get_running_loop().create_future()
            self._stop = asyncio.Event()
            self._task = asyncio.create_task(self._serve(self._url, self._stop))
        return await asyncio.shield(self._url)

    async def close(self) -> None:
        """Serve no more."""
        task, self._task = self._task, None
        if task is None or self._stop is None:
            return
        self._stop.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})
        self._url = self._stop = None

    async def _serve(self, url: asyncio.Future[str], stop: asyncio.Event) -> None:
        address = self._address
        try:
            sock = bind(address.host, address.port, address.token)
            async with listening(self._service(), sock) as local:
                url.set_result((address.url or local).rstrip("/"))
                await stop.wait()
        except CuarlError as error:
            if not url.done():
                url.set_exception(error)
        finally:
            if not url.done():
                url.cancel()

    def _service(self) -> Service:
        from cuarl.serve.app import Service
        from cuarl.serve.models import Models, Served
        from cuarl.serve.pictures import Pictures
        from cuarl.serve.requests import Defaults
        from cuarl.serve.sessions import Sessions

        address = self._address
        self._sessions = Sessions(self._hear)
        outside = urlsplit(address.url or "").hostname
        defaults = Defaults(self._params, fixed=True)
        models = Models(Served(self.model, self._sampler))
        return Service(
            models,
            self._sessions,
            Pictures(address.picture_hosts),
            defaults,
            address.token,
            is_loopback(address.host),
            hosts=frozenset({outside} if outside else ()),
        )

    @property
    def sessions(self) -> Sessions:
        """Those that are open; there once it serves."""
        assert self._sessions is not None, "url() comes first"
        return self._sessions

    def heard(self, session: str) -> _Heard:
        """What was recorded of a session so far."""
        return self._heard.setdefault(session, _Heard())

    def forget(self, session: str) -> None:
        """The session's record is not asked for any more."""
        self._heard.pop(session, None)

    async def _hear(self, trajectory: Trajectory, pictures: Mapping[str, Screenshot]) -> None:
        found = self._heard.get(str(trajectory.info.get("session")))
        if found is None:  # a request without a session, or one whose episode is over
            return
        found.turns, found.record = trajectory.turns, trajectory
        found.pictures.update(pictures)
        found.news.set()
        found.news = anyio.Event()


class Talk:
    """One session of a host."""

    def __init__(self, host: Host, session: str, sampling_seed: int) -> None:
        self._host, self._session, self._seed = host, session, sampling_seed
        self._open = False

    @property
    def model(self) -> str:
        """Name that the model is asked for by."""
        return self._host.model

    @property
    def key(self) -> str:
        """API key that its client sends."""
        return self._host.key

    def ended(self) -> Trajectory | None:
        """The record as the client ended it; None while it has not."""
        record = self._host.heard(self._session).record
        return record if record is not None and record.stop is not StopReason.CANCELLED else None

    async def open(self) -> str:
        """Begin; the base URL for the agent's client."""
        from cuarl.serve.sessions import Opening

        base = await self._host.url()
        self._host.heard(self._session)
        self._host.sessions.open(self._session, Opening(sampling_seed=self._seed))
        self._open = True
        return f"{base}/sessions/{self._session}/v1"

    async def turn(self, index: int) -> Turn:
        """The turn of that index, waited for."""
        heard = self._host.heard(self._session)
        while len(heard.turns) <= index:
            await heard.news.wait()
        return heard.turns[index]

    def pictures(self, turn: Turn) -> Mapping[str, Screenshot]:
        """What a turn was shown."""
        refs = [turn.screenshot, *(turn.sampled.images if turn.sampled else ())]
        known = self._host.heard(self._session).pictures
        return {ref.digest: known[ref.digest] for ref in refs}

    async def close(self) -> None:
        """Let the session go; requests that still come are refused."""
        from cuarl.serve.sessions import Ending
        from cuarl.web.refusal import Refusal

        opened, self._open = self._open, False
        if opened:
            try:
                if self.ended() is None:
                    await self._host.sessions.end(self._session, Ending())
            except Refusal as refusal:
                raise SamplerError(refusal.what) from refusal
            finally:
                self._host.forget(self._session)
