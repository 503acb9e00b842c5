"""Following a run of gbox-mini-agent.

What its model sampled comes from whoever serves the model, what it did from events.

The served model's turns lead: the k-th ``model_output`` of the events belongs to the k-th recorded turn, and what was
carried out before the next one is that turn's action. So a turn has the exact ids and pictures of the model's call.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import anyio
import httpx
from PIL import UnidentifiedImageError

from cuarl.env.gym.actions import FINISHED, read_action
from cuarl.env.gym.runs import MiniAgent, Status, key_of
from cuarl.env.http import trusted
from cuarl.errors import AgentError, EnvError
from cuarl.trajectory import Turn
from cuarl.types import Action, Finish, ParseError, Screenshot

LARGEST_PICTURE = 20 << 20
_LIMITS = ("max", "limit", "time", "deadline")
"""Words of a failed run's reason by which it ran out of steps or time, which is the policy's doing."""


class Conversation(Protocol):
    """A model as it is served to one run, and the turns that were recorded of it."""

    @property
    def model(self) -> str:
        """Name that the model is asked for by."""
        ...

    async def open(self) -> str:
        """Begin to serve; the base URL."""
        ...

    async def turn(self, index: int) -> Turn:
        """The recorded turn, waited for until it is there."""
        ...

    def pictures(self, turn: Turn) -> Mapping[str, Screenshot]:
        """What a turn was shown, by digest."""
        ...

    async def close(self) -> None:
        """Serve no more."""
        ...


class Done(NamedTuple):
    """What became of one of the model's turns."""

    action: Action | None
    error: ParseError | None = None
    warnings: tuple[str, ...] = ()
    feedback: str = ""


class FollowedRun:
    """One run, polled every ``poll_s`` seconds. Pictures are fetched from ``hosts`` only."""

    def __init__(
        self, agent: MiniAgent, run: str, conversation: Conversation, *, poll_s: float, hosts: Collection[str] = ()
    ) -> None:
        self.run, self._agent, self._conversation = run, agent, conversation
        self._poll_s, self._hosts = poll_s, frozenset(hosts)
        self._events: list[Mapping[str, Any]] = []
        self._known: set[str] = set()
        self._since: str | None = None
        self.end: Status | None = None

    async def turn(self, index: int) -> Turn | None:
        """The model's turn of that index; None if the run is over without it. Raises EnvError for a run that failed."""
        while True:
            with anyio.move_on_after(self._poll_s):
                return await self._conversation.turn(index)
            if self.end is not None:
                return None
            await self._poll()

    async def done(self, index: int, turn: Turn) -> Done:
        """What the agent did upon the model's turn.

        Raises AgentError if the events are of other turns than the record.
        """
        while True:
            segment, closed = self._segment(index)
            if closed or self.end is not None:
                return self._read(index, segment, turn)
            await self._poll()
            if not self._segment(index)[1] and self.end is None:
                await anyio.sleep(self._poll_s)

    async def last_picture(self) -> Screenshot | None:
        """The screen after the last action, where the agent shows it."""
        try:
            url = await self._agent.last_picture(self.run)
            return Screenshot.decode(await self._fetched(url)) if url else None
        except (EnvError, httpx.HTTPError, OSError, ValueError, binascii.Error, UnidentifiedImageError):
            return None  # the record then ends with the last screen that the policy was shown

    # --- events ----------------------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        status = await self._agent.status(
            self.run
        )  # before the events, so that those of a run that is over are all there
        for event in await self._agent.events(self.run, self._since):
            key = key_of(event)
            if key not in self._known:
                self._known.add(key)
                self._events.append(event)
                self._since = str(event["ts"]) if event.get("ts") is not None else self._since
        ended = next((e for e in self._events if e["type"] == "run_end"), None)
        if status.over:
            self.end = status
        elif ended is not None:
            self.end = Status("completed" if ended.get("ok") else "failed", str(ended.get("reason") or ""))
        if self.end is not None:
            self._judge(self.end)

    def _judge(self, end: Status) -> None:
        """Raise EnvError for a run that failed for other reasons than its model's."""
        if end.status != "failed" or any(word in end.reason.casefold() for word in _LIMITS):
            return
        said = [str(e.get("message")) for e in self._events if e["type"] == "error" and e.get("message")]
        reason = "; ".join(filter(None, [end.reason, *said[-1:]])) or "it gives no reason"
        raise EnvError(f"the run of gbox-mini-agent failed: {reason}", where=f"run {self.run}")

    def _segment(self, index: int) -> tuple[list[Mapping[str, Any]], bool]:
        """The events from the model output of that index up to the next, and whether no more can come."""
        outputs = [i for i, event in enumerate(self._events) if event["type"] == "model_output"]
        if index >= len(outputs):
            return [], False
        begin, closed = outputs[index], index + 1 < len(outputs)
        segment = self._events[begin : outputs[index + 1]] if closed else self._events[begin:]
        return segment, closed or any(event["type"] in ("step_end", "run_end") for event in segment)

    def _read(self, index: int, segment: list[Mapping[str, Any]], turn: Turn) -> Done:
        if segment:
            _same(segment[0], turn, f"run {self.run}, output {index}")
        acted = [event for event in segment if event["type"] == "action_executed"]
        if not acted:
            return Done(None, ParseError(code="no_call", message="the agent did nothing upon this answer"))
        size = turn.screenshot.width, turn.screenshot.height
        calls = [_call(event) for event in acted]
        found = read_action(*calls[0], size)
        further = tuple(f"then also {name}" for name, _ in calls[1:] if name.casefold() != FINISHED)
        feedback = str((acted[0].get("action") or {}).get("rawFeedback") or "")
        if isinstance(found, ParseError):
            return Done(None, found, further, feedback)
        return Done(found, None, further, feedback)

    async def _fetched(self, url: str) -> bytes:
        if url.startswith("data:"):
            return base64.b64decode(url.partition(",")[2], validate=True)
        parts = urlsplit(url)
        if not {parts.hostname or "", parts.netloc} & self._hosts:
            raise ValueError("pictures of that host are not fetched")
        async with (
            httpx.AsyncClient(timeout=20, follow_redirects=False, verify=trusted()) as client,
            client.stream("GET", url) as reply,
        ):
            reply.raise_for_status()
            data = bytearray()
            async for chunk in reply.aiter_bytes():
                data += chunk
                if len(data) > LARGEST_PICTURE:
                    raise ValueError("the picture is too large")
        return bytes(data)


def ended(done: Done) -> bool:
    """Whether the agent said that it was done."""
    return isinstance(done.action, Finish)


def _call(event: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    action = event.get("action")
    if not isinstance(action, Mapping):
        return "", {}
    args = action.get("args")
    return str(action.get("name", "")), args if isinstance(args, Mapping) else {}


def _same(event: Mapping[str, Any], turn: Turn, where: str) -> None:
    """Raise AgentError if the agent was answered something else than what was recorded: the turns would be mixed up."""
    output = event.get("modelOutput")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    message = choices[0].get("message") if isinstance(choices, list) and choices else None
    if not isinstance(message, Mapping) or message.get("tool_calls") or not isinstance(message.get("content"), str):
        return
    if turn.sampled is not None and message["content"].strip() != turn.sampled.text.strip():
        raise AgentError("the agent's model output is not what was recorded as sampled", where=where)
