"""Sessions: the turns of one agent at one task, recorded as one trajectory.

A client's later request repeats the earlier answers as text. A session remembers the token ids that each answer was
sampled as, so the next prompt has those ids and not a new tokenisation of the text; it also keeps every picture that it
was sent, so a picture is opened once and its pixels stay the same.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
from PIL import Image
from pydantic import Field, ValidationError

from cuarl.policy.sampler import Message, Part, Picture, SampledText, Text
from cuarl.serve.pictures import Pictures
from cuarl.serve.requests import ImagePart, ModelRequest, RequestMessage, TextPart
from cuarl.serve.tools import Answer, call_text, tool_prompt
from cuarl.trajectory import Sampled, Trajectory, Turn, Verdict
from cuarl.types import Record, Screenshot, StopReason
from cuarl.web.refusal import Refusal

SESSION_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_GOAL = 500
Int64 = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""What a database holds."""

Save = Callable[[Trajectory, Mapping[str, Screenshot]], Awaitable[None]]
"""Takes the record of a session as it stands, after every turn and at its end; a later one replaces an earlier one."""


class Opening(Record):
    """What is known of a session before its first turn; all of it may be left out."""

    task_id: str = "session"
    goal: str = ""
    """Unset means the first text that the user side sends."""
    category: str = ""
    difficulty: str = ""
    group_id: str = ""
    """Sessions of one group are attempts at the same thing."""
    attempt: int = Field(default=0, ge=0, lt=1 << 31)
    seed: Int64 = 0
    sampling_seed: Int64 | None = None
    """Decides the draws, whatever seeds the requests have; unset means that those, or the server's seed, do."""
    info: Mapping[str, Any] = Field(default_factory=dict)


class Ending(Record):
    """How a session ended, as whoever judges it says."""

    stop: StopReason = StopReason.DONE
    success: bool | None = None
    """The verdict, if there is one."""
    score: float | None = Field(default=None, ge=0, le=1)
    """Share of the checks that hold; by ``success`` if unset."""
    reward: float | None = Field(default=None, allow_inf_nan=False)
    """Unset means that the session is not scored, and not that it is worth nothing."""
    answer: str | None = None
    info: Mapping[str, Any] = Field(default_factory=dict)


@dataclass(slots=True)
class Session:
    """One agent's conversation. ``lock`` keeps its turns in order."""

    id: str
    episode_id: str
    run_id: str
    opening: Opening
    named: bool = True
    """Whether the client named it; else it is a single request."""
    started_at: float = field(default_factory=time.time)
    turns: list[Turn] = field(default_factory=list)
    pictures: dict[str, Screenshot] = field(default_factory=dict)
    ending: Ending | None = None
    touched: float = field(default_factory=time.monotonic)
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    _seen: dict[str, Screenshot] = field(default_factory=dict)
    _texts: dict[str, list[SampledText]] = field(default_factory=dict)
    """By the text that the client was given; several answers may look alike there, and be other tokens."""
    _calls: dict[str, SampledText] = field(default_factory=dict)

    async def messages(self, ask: ModelRequest, pictures: Pictures) -> tuple[Message, ...]:
        """The conversation as a sampler takes it. Raises Refusal for pictures that can't be opened."""
        told, made = _joined(_with_tools(ask)), list[Message]()
        alike = Counter(said.text.strip() for said in told if said.role == "assistant" and not said.calls)
        for said in told:
            made.append(Message(said.role, await self._parts(said, pictures, alike)))  # type: ignore[arg-type]
        return tuple(made)

    async def _parts(self, said: RequestMessage, pictures: Pictures, alike: Counter[str]) -> tuple[Part, ...]:
        if said.role == "assistant":
            return (self._answer(said, alike),)
        return tuple(
            [Text(p.text) if isinstance(p, TextPart) else Picture(await self._open(p, pictures)) for p in said.parts]
        )

    async def _open(self, link: ImagePart, pictures: Pictures) -> Screenshot:
        key = hashlib.sha256(link.url.encode()).hexdigest()
        if key not in self._seen:
            self._seen[key] = await pictures.open(link.url)
        return self._seen[key]

    def _answer(self, said: RequestMessage, alike: Counter[str]) -> SampledText:
        """What was sampled, if it was sampled here; else its text, which is then tokenised anew.

        ``alike`` counts, for each text, the answers from here on that have it: the latest of them is the latest
        sampled.
        """
        found = next((self._calls[c.id] for c in said.calls if c.id in self._calls), None)
        if found is None and not said.calls:
            text = said.text.strip()
            sampled, left = self._texts.get(text, []), alike[text]
            alike[text] -= 1
            found = sampled[max(0, len(sampled) - left)] if sampled else None
        return found or SampledText("\n".join([*([said.text] if said.text else []), *map(call_text, said.calls)]))

    def record(
        self,
        sampled: Sampled,
        messages: tuple[Message, ...],
        answer: Answer,
        calls: tuple[str, ...],
        model_s: float,
        warnings: tuple[str, ...] = (),
    ) -> None:
        """Add a turn; ``calls`` are the ids that the answer's tool calls were given."""
        said = SampledText(sampled.text, sampled.token_ids if sampled.exact else None)
        self._texts.setdefault(answer.text.strip(), []).append(said)
        self._calls.update(dict.fromkeys(calls, said))
        shown = [p.screenshot for m in messages for p in m.parts if isinstance(p, Picture)]
        last = shown[-1] if shown else _NO_PICTURE
        for screenshot in (*shown, last):
            self.pictures[screenshot.digest] = screenshot
        self.turns.append(
            Turn(index=len(self.turns), screenshot=last.ref, sampled=sampled, model_s=model_s, warnings=warnings)
        )
        self.touched = time.monotonic()
        if not self.opening.goal:
            goal = next((p.text for m in messages if m.role == "user" for p in m.parts if isinstance(p, Text)), "")
            self.opening = self.opening.model_copy(update={"goal": goal[:_GOAL]})

    def trajectory(self) -> Trajectory:
        """The record as it stands; one that is not over counts as cancelled, so that it is never scored."""
        opening, end = self.opening, self.ending
        first = self.turns[0].sampled if self.turns else None
        verdict = None
        if end is not None and end.success is not None:
            verdict = Verdict(success=end.success, score=float(end.success) if end.score is None else end.score)
        return Trajectory(
            episode_id=self.episode_id,
            run_id=self.run_id,
            group_id=opening.group_id,
            attempt=opening.attempt,
            task_id=opening.task_id,
            goal=opening.goal,
            category=opening.category,
            difficulty=opening.difficulty,
            env="served",
            agent="openai-client",
            policy=first.policy if first else "",
            policy_version=first.policy_version if first else 0,
            seed=opening.seed,
            turns=tuple(self.turns),
            answer=end.answer if end else None,
            stop=end.stop if end else StopReason.CANCELLED,
            verdict=verdict,
            reward=end.reward if end else None,
            started_at=self.started_at,
            wall_s=time.time() - self.started_at,
            info={"session": self.id, "open": end is None, **opening.info, **(end.info if end else {})},
        )


class Sessions:
    """All sessions of a server, and what is done with their records."""

    def __init__(self, save: Save, *, run_id: str = "", prefix: str = "session", idle_s: float = 3600.0) -> None:
        """``prefix`` makes episode ids unique within the store. A session idle for ``idle_s`` is over, unscored."""
        self._save, self._run_id, self._prefix, self._idle_s = save, run_id, prefix, idle_s
        self._open: dict[str, Session] = {}
        self._ended: set[str] = set()
        self._single = 0
        self.recorded = 0
        """Turns recorded so far."""

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._open.values()))

    def open(self, session_id: str, opening: Opening | None = None) -> Session:
        """Begin a session. Raises Refusal if the id is taken or is no id."""
        if not SESSION_ID.fullmatch(session_id):
            raise Refusal(
                "a session's id has letters, digits, dots, dashes and underscores, at most 128", param="session"
            )
        if session_id in self._open or session_id in self._ended:
            raise Refusal(f"session {session_id} exists already", param="session", status=409)
        made = Session(session_id, f"{self._prefix}.{session_id}", self._run_id, opening or Opening())
        self._open[session_id] = made
        return made

    def get(self, session_id: str) -> Session:
        """A session that is open. Raises Refusal if there is none."""
        if session_id in self._ended:
            raise Refusal(f"session {session_id} has ended", param="session", status=409)
        if session_id not in self._open:
            raise Refusal(f"there is no session {session_id}", param="session", status=404)
        return self._open[session_id]

    def of_request(self, session_id: str | None) -> Session:
        """The session of a request: the one it names, begun if need be, or one of its own."""
        if session_id is None:
            self._single += 1
            name = f"request-{self._single:06d}"
            return Session(name, f"{self._prefix}.{name}", self._run_id, Opening(), named=False)
        return self._open.get(session_id) or (self.get if session_id in self._ended else self.open)(session_id)

    async def keep(self, session: Session) -> None:
        """Hand over the record of a session, after a turn; a single request is over with it."""
        if not session.named:
            session.ending = Ending()
        self.recorded += 1
        await self._save(session.trajectory(), session.pictures)

    async def end(self, session_id: str, ending: Ending) -> Trajectory:
        """End a session, with its verdict; returns the record."""
        session = self.get(session_id)
        async with session.lock:
            self.get(session_id)  # another request may have ended it meanwhile
            # a client that leaves, or a store that fails, must not cost the verdict
            with anyio.CancelScope(shield=True), ExitStack() as undo:
                session.ending = ending
                undo.callback(setattr, session, "ending", None)
                record = session.trajectory()
                await self._save(record, session.pictures)
                undo.pop_all()
            self._open.pop(session_id, None)
            self._ended.add(session_id)
        return record

    async def sweep(self) -> int:
        """End the sessions that have been idle for too long; returns how many."""
        late = [s for s in self if time.monotonic() - s.touched > self._idle_s and not s.lock.locked()]
        for session in late:
            await self.end(session.id, Ending(stop=StopReason.CANCELLED, info={"idle": True}))
        return len(late)

    async def close(self) -> None:
        """End what is still open, unscored."""
        for session in self:
            await self.end(session.id, Ending(stop=StopReason.CANCELLED))


def parsed(kind: type[Record], body: Any) -> Any:
    """``body`` as an ``Opening`` or ``Ending``. Raises Refusal that names the field at fault."""
    try:
        return kind.model_validate(body or {})
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal(first["msg"], param=".".join(map(str, first["loc"])) or None) from None


def _with_tools(ask: ModelRequest) -> list[RequestMessage]:
    if not ask.tools:
        return list(ask.messages)
    described, first = TextPart(tool_prompt(ask.tools)), ask.messages[0]
    if first.role == "system":
        return [RequestMessage("system", (*first.parts, TextPart("\n\n"), described)), *ask.messages[1:]]
    return [RequestMessage("system", (described,)), *ask.messages]


def _joined(said: list[RequestMessage]) -> list[RequestMessage]:
    """Results of tools as user messages, neighbours in one."""
    found: list[RequestMessage] = []
    follows = False
    for one in said:
        if one.role != "tool":
            found.append(one)
            follows = False
            continue
        parts = (TextPart("<tool_response>\n"), *one.parts, TextPart("\n</tool_response>"))
        if follows:
            found[-1] = RequestMessage("user", (*found[-1].parts, TextPart("\n"), *parts))
        else:
            found.append(RequestMessage("user", parts))
        follows = True
    return found


_NO_PICTURE = Screenshot(Image.new("RGB", (1, 1), "white"))
"""Stands for the screen of a turn that was shown none: a record names one picture a turn."""
