"""The server: routes, who may ask, and the way of a request from bytes to a recorded, sampled answer.

Routes stand at the root and below ``/sessions/{session}``, so that a client's base URL alone can say whose turns these
are; the header ``X-Cuarl-Session`` says it, too. A request without either is a session of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from cuarl.errors import AgentError, SamplerError
from cuarl.policy.sampler import Message, PromptTooLong, SampleRequest, SamplingParams
from cuarl.safe_text import loggable
from cuarl.serve import replies, response_replies
from cuarl.serve.chat import read_chat
from cuarl.serve.models import Models, Served
from cuarl.serve.pictures import Pictures
from cuarl.serve.replies import Reply
from cuarl.serve.requests import Defaults, ModelRequest, RequestMessage, TextPart, ToolCall, flag, text
from cuarl.serve.responses import read_responses
from cuarl.serve.sessions import Ending, Opening, Session, Sessions, parsed
from cuarl.serve.tools import read_answer
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, openai_error
from cuarl.web.rules import Rules, Token

logger = logging.getLogger(__name__)

SESSION_HEADER = "x-cuarl-session"
MAX_BODY = 128 << 20
"""Largest request: some dozens of screenshots."""
_KEPT_RESPONSES = 1000
_BEAT_S = 15.0
_TRUNCATED = "sampled with top_p or top_k: the log-probabilities are of a truncated distribution, so they are left out"
_INEXACT = "the policy is elsewhere and did not give the token ids that it saw and sampled: not exact"

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class Service:
    """What the routes share. ``token`` is asked of every request if set; ``seed`` decides the draws."""

    models: Models
    sessions: Sessions
    pictures: Pictures = field(default_factory=Pictures)
    defaults: Defaults = field(default_factory=Defaults)
    token: str | None = None
    loopback: bool = True
    """Whether it listens on this machine alone: then it answers only to this machine's names (no DNS rebinding)."""
    seed: int = 0
    hosts: frozenset[str] = frozenset()
    """Further names that it answers to, in lower case and without a port."""
    _said: OrderedDict[str, tuple[RequestMessage, ...]] = field(default_factory=OrderedDict)

    def app(self) -> Starlette:
        """The ASGI application."""
        both: list[tuple[str, Handler, str]] = [
            ("/v1/models", self.list_models, "GET"),
            ("/v1/models/{model:path}", self.show_model, "GET"),
            ("/v1/chat/completions", self.chat, "POST"),
            ("/v1/responses", self.responses, "POST"),
        ]
        one: list[tuple[str, Handler, str]] = [
            ("/health", self.health, "GET"), ("/v1/load_lora_adapter", self.load_adapter, "POST"),
            ("/v1/unload_lora_adapter", self.unload_adapter, "POST"), ("/sessions/{session}", self.begin, "PUT"),
            ("/sessions/{session}", self.show, "GET"), ("/sessions/{session}/end", self.end, "POST"),
        ]  # fmt: skip
        below = [(f"/sessions/{{session}}{path}", handler, method) for path, handler, method in both]
        routes = [Route(path, handler, methods=[method]) for path, handler, method in [*one, *both, *below]]
        return application(routes, self.rules())

    def rules(self) -> Rules:
        """Who may ask, and how much."""
        return Rules(
            say=openai_error,
            local=self.loopback,
            hosts=self.hosts,
            body_bytes=MAX_BODY,
            body_s=120.0,
            token=Token(self.token) if self.token else None,
            open=frozenset({"/health"}).__contains__,
        )

    # --- models ----------------------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """Alive."""
        return json_response({"status": "ok"})

    async def list_models(self, request: Request) -> Response:
        """All policies."""
        return json_response({"object": "list", "data": self.models.cards()})

    async def show_model(self, request: Request) -> Response:
        """One policy."""
        return json_response(self.models.get(request.path_params["model"]).card())

    async def load_adapter(self, request: Request) -> Response:
        """Put an adapter in, as vLLM does it."""
        body = await json_object(request)
        name, path = text(body, "lora_name"), text(body, "lora_path")
        await self.models.put(name, path, inplace=flag(body, "load_inplace"))
        return Response(f"Success: LoRA adapter '{name}' added successfully.", media_type="text/plain")

    async def unload_adapter(self, request: Request) -> Response:
        """Take an adapter out."""
        name = text(await json_object(request), "lora_name")
        self.models.drop(name)
        return Response(f"Success: LoRA adapter '{name}' removed successfully.", media_type="text/plain")

    # --- sessions --------------------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        """Begin a session, with what is known of it."""
        session = self.sessions.open(
            request.path_params["session"], parsed(Opening, await json_object(request, empty=True))
        )
        return json_response(_about(session), 201)

    async def show(self, request: Request) -> Response:
        """How far a session is."""
        return json_response(_about(self.sessions.get(request.path_params["session"])))

    async def end(self, request: Request) -> Response:
        """End a session, with its verdict and reward."""
        ending = parsed(Ending, await json_object(request, empty=True))
        record = await self.sessions.end(request.path_params["session"], ending)
        return json_response({"episode_id": record.episode_id, "turns": len(record.turns), "reward": record.reward})

    # --- answers ---------------------------------------------------------------------------------------------------

    async def chat(self, request: Request) -> Response:
        """``POST /v1/chat/completions``."""
        ask = read_chat(await json_object(request), self.defaults)
        turn = await self._turn(request, ask, f"chatcmpl-{_digest(time.time_ns())}")
        if not ask.stream:
            return json_response(replies.completion(await turn.play()))
        await turn.prepare()
        return StreamingResponse(_chat_stream(turn), media_type="text/event-stream")

    async def responses(self, request: Request) -> Response:
        """``POST /v1/responses``."""
        body = await json_object(request)
        before = text(body, "previous_response_id")
        if before and before not in self._said:
            raise Refusal(f"there is no response {before[:80]}", param="previous_response_id", status=404)
        ask = read_responses(body, self.defaults, self._said[before] if before else ())
        turn = await self._turn(request, ask, f"resp_{_digest(time.time_ns())}")
        if not ask.stream:
            return json_response(response_replies.response(await turn.play()))
        await turn.prepare()
        return StreamingResponse(_response_stream(turn), media_type="text/event-stream")

    async def _turn(self, request: Request, ask: ModelRequest, id: str) -> _Turn:
        served = await self.models.found(ask.model)
        return _Turn(self, ask, self.sessions.of_request(_session_id(request)), id, served)

    def remember(self, reply: Reply) -> None:
        """Keep a response, to be gone on with by its id; the oldest are forgotten."""
        if not reply.ask.store or not reply.id.startswith("resp_"):
            return
        calls = tuple(ToolCall(id, *call) for id, call in zip(reply.call_ids, reply.answer.calls, strict=True))
        text = (TextPart(reply.answer.text),) if reply.answer.text else ()
        # instructions are those of each request, and are not carried on
        said = [s for i, s in enumerate(reply.ask.messages) if i > 0 or s.role != "system"]
        self._said[reply.id] = (*said, RequestMessage("assistant", text, calls))
        while len(self._said) > _KEPT_RESPONSES:
            self._said.popitem(last=False)


class _Turn:
    """One request on its way through a session."""

    def __init__(self, service: Service, ask: ModelRequest, session: Session, id: str, served: Served) -> None:
        self.service, self.ask, self.session, self.id, self.served = service, ask, session, id, served
        self._messages: tuple[Message, ...] | None = None

    async def prepare(self) -> None:
        """Open the pictures and check the request, while a refusal can still have a status."""
        self._messages = await self.session.messages(self.ask, self.service.pictures)

    async def play(self) -> Reply:
        """Sample and record. Raises Refusal."""
        async with self.session.lock:
            if self.session.ending is not None:
                raise Refusal(f"session {self.session.id} has ended", param="session", status=409)
            # earlier answers may have been sampled since the request was prepared
            await self.prepare()
            assert self._messages is not None
            begin = time.perf_counter()
            sampled = await self._sample(self._messages)
            if self.ask.logprobs and sampled.logprobs is None:
                raise Refusal(
                    "the policy behind this server gives no log-probabilities for this request", param="logprobs"
                )
            answer = read_answer(sampled.text, {t["name"] for t in self.ask.tools}, self.ask.params.stop)
            call_ids = tuple(
                f"call_{_digest(self.session.episode_id, len(self.session.turns), i)}" for i in range(len(answer.calls))
            )
            truncated = _truncates(self.ask.params)
            warnings = ((_TRUNCATED,) if truncated else ()) + (() if sampled.exact else (_INEXACT,))
            kept = sampled.model_copy(update={"logprobs": None}) if truncated else sampled
            # what was sampled is recorded, even for a client that has left since
            with anyio.CancelScope(shield=True):
                self.session.record(kept, self._messages, answer, call_ids, time.perf_counter() - begin, warnings)
                await self.service.sessions.keep(self.session)
        reply = Reply(self.id, self.ask, self.served, sampled, answer, call_ids)
        self.service.remember(reply)
        return reply

    async def _sample(self, messages: tuple[Message, ...]) -> Any:
        session = self.session
        own, turn = session.opening.sampling_seed, len(session.turns)
        if own is not None:
            seed = _seed(own, "", turn)
        else:
            seed = self.ask.seed if self.ask.seed is not None else _seed(self.service.seed, session.id, turn)
        request = SampleRequest(messages, self.ask.params, seed)
        try:
            sampled = await self.served.sampler.sample(request)
        except AgentError as error:
            raise Refusal(error.what, param="messages") from error
        except SamplerError as error:
            logger.warning("session %s: %s", session.id, loggable(str(error)))
            raise Refusal(error.what, code="sampler_failed", status=502) from error
        if isinstance(sampled, PromptTooLong):
            raise Refusal(
                f"This model's maximum context length is {sampled.limit} tokens. However, your messages have "
                f"{sampled.needed} tokens.",
                param="messages",
                code="context_length_exceeded",
            )
        return sampled


async def _chat_stream(turn: _Turn) -> AsyncIterator[str]:
    yield replies.event(replies.opening(turn.id, turn.ask.model))
    async for beat in _beats(task := asyncio.ensure_future(turn.play())):
        yield beat
    try:
        for chunk in replies.chunks(task.result()):
            yield replies.event(chunk)
    except Refusal as refusal:
        yield replies.event(openai_error(refusal))
        return
    yield "data: [DONE]\n\n"


async def _response_stream(turn: _Turn) -> AsyncIterator[str]:
    begun = response_replies.skeleton(turn.id, turn.ask.model, "in_progress")
    for number, kind in enumerate(("response.created", "response.in_progress")):
        yield replies.event({"type": kind, "response": begun, "sequence_number": number}, kind)
    async for beat in _beats(task := asyncio.ensure_future(turn.play())):
        yield beat
    try:
        for event in response_replies.events(task.result(), 2):
            yield replies.event(event, event["type"])
    except Refusal as refusal:
        error = {"code": refusal.code or "server_error", "message": refusal.what}
        failed = {**begun, "status": "failed", "error": error}
        yield replies.event({"type": "response.failed", "response": failed, "sequence_number": 2}, "response.failed")


async def _beats(task: asyncio.Future[Any]) -> AsyncIterator[str]:
    """Comments while an answer is being sampled, so that nobody between takes the connection for dead."""
    try:
        while not (await asyncio.wait({task}, timeout=_BEAT_S))[0]:
            yield ": sampling\n\n"
    finally:
        if not task.done():
            task.cancel()


# --- small things --------------------------------------------------------------------------------------------------


def _session_id(request: Request) -> str | None:
    return request.path_params.get("session") or request.headers.get(SESSION_HEADER)


def _about(session: Session) -> dict[str, Any]:
    return {
        "session": session.id,
        "episode_id": session.episode_id,
        "turns": len(session.turns),
        "base_path": f"/sessions/{session.id}/v1",
    }


def _truncates(params: SamplingParams) -> bool:
    return params.top_p < 1 or params.top_k > 0


def _digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:24]


def _seed(run_seed: int, session: str, turn: int) -> int:
    """The same session of the same run draws the same."""
    return int.from_bytes(hashlib.sha256(f"{run_seed}/{session}/{turn}".encode()).digest()[:8]) >> 1
