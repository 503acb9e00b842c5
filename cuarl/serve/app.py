"""The server: routes, who may ask, and the way of a request from bytes to a recorded, sampled answer.

Routes stand at the root and below ``/sessions/{session}``, so that a client's base URL alone can say whose turns these
are; the header ``X-Cuarl-Session`` says it, too. A request without either is a session of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cuarl.errors import AgentError, SamplerError
from cuarl.policy.sampler import Message, PromptTooLong, SampleRequest, SamplingParams
from cuarl.safe_text import loggable
from cuarl.serve import replies, response_replies
from cuarl.serve.asks import Ask, Defaults, Said, ToolCall, Words
from cuarl.serve.chat import read_chat
from cuarl.serve.models import Models, Served
from cuarl.serve.pictures import Pictures
from cuarl.serve.replies import Reply
from cuarl.serve.responses import read_responses
from cuarl.serve.sessions import Ending, Opening, Session, Sessions, parsed
from cuarl.serve.tools import read_answer
from cuarl.web.refusal import Refusal, openai_error
from cuarl.web.rules import is_loopback

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
    _said: OrderedDict[str, tuple[Said, ...]] = field(default_factory=OrderedDict)

    def app(self) -> Starlette:
        """The ASGI application."""
        both: list[tuple[str, Handler, str]] = [
            ("/v1/models", self.list_models, "GET"), ("/v1/models/{model:path}", self.show_model, "GET"),
            ("/v1/chat/completions", self.chat, "POST"), ("/v1/responses", self.responses, "POST"),
        ]  # fmt: skip
        one: list[tuple[str, Handler, str]] = [
            ("/health", self.health, "GET"), ("/v1/load_lora_adapter", self.load_adapter, "POST"),
            ("/v1/unload_lora_adapter", self.unload_adapter, "POST"), ("/sessions/{session}", self.begin, "PUT"),
            ("/sessions/{session}", self.show, "GET"), ("/sessions/{session}/end", self.end, "POST"),
        ]  # fmt: skip
        below = [(f"/sessions/{{session}}{path}", handler, method) for path, handler, method in both]
        routes = [
            Route(path, self._guarded(handler), methods=[method]) for path, handler, method in [*one, *both, *below]
        ]
        return Starlette(routes=routes)

    # --- who may ask -----------------------------------------------------------------------------------------------

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            try:
                if request.url.path != "/health":
                    self._admit(request)
                return await handler(request)
            except Refusal as refusal:
                return JSONResponse(openai_error(refusal), refusal.status)

        return guarded

    def _admit(self, request: Request) -> None:
        if self.loopback and not is_loopback(request.headers.get("host", "")):
            raise Refusal("this server answers to the names of this machine only", status=403)
        if self.token is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise Refusal(
                "wrong or missing key: send the server's token as a bearer token", code="invalid_api_key", status=401
            )

    # --- models ----------------------------------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """Alive."""
        return JSONResponse({"status": "ok"})

    async def list_models(self, request: Request) -> Response:
        """All policies."""
        return JSONResponse({"object": "list", "data": self.models.cards()})

    async def show_model(self, request: Request) -> Response:
        """One policy."""
        return JSONResponse(self.models.get(request.path_params["model"]).card())

    async def load_adapter(self, request: Request) -> Response:
        """Put an adapter in, as vLLM does it."""
        body = await _json(request)
        name, path = str(body.get("lora_name") or ""), str(body.get("lora_path") or "")
        await self.models.put(name, path, inplace=bool(body.get("load_inplace")))
        return Response(f"Success: LoRA adapter '{name}' added successfully.", media_type="text/plain")

    async def unload_adapter(self, request: Request) -> Response:
        """Take an adapter out."""
        name = str((await _json(request)).get("lora_name") or "")
        self.models.drop(name)
        return Response(f"Success: LoRA adapter '{name}' removed successfully.", media_type="text/plain")

    # --- sessions --------------------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        """Begin a session, with what is known of it."""
        session = self.sessions.open(request.path_params["session"], parsed(Opening, await _json(request, empty=True)))
        return JSONResponse(_about(session), 201)

    async def show(self, request: Request) -> Response:
        """How far a session is."""
        return JSONResponse(_about(self.sessions.get(request.path_params["session"])))

    async def end(self, request: Request) -> Response:
        """End a session, with its verdict and reward."""
        ending = parsed(Ending, await _json(request, empty=True))
        record = await self.sessions.end(request.path_params["session"], ending)
        return JSONResponse({"episode_id": record.episode_id, "turns": len(record.turns), "reward": record.reward})

    # --- answers ---------------------------------------------------------------------------------------------------

    async def chat(self, request: Request) -> Response:
        """``POST /v1/chat/completions``."""
        ask = read_chat(await _json(request), self.defaults)
        turn = _Turn(self, ask, self.sessions.of_request(_session_id(request)), f"chatcmpl-{_digest(time.time_ns())}")
        if not ask.stream:
            return JSONResponse(replies.completion(await turn.play()))
        await turn.prepare()
        return StreamingResponse(_chat_stream(turn), media_type="text/event-stream")

    async def responses(self, request: Request) -> Response:
        """``POST /v1/responses``."""
        body = await _json(request)
        before = body.get("previous_response_id") if isinstance(body, dict) else None
        if before is not None and before not in self._said:
            raise Refusal(f"there is no response {before}", param="previous_response_id", status=404)
        ask = read_responses(body, self.defaults, self._said[before] if before else ())
        turn = _Turn(self, ask, self.sessions.of_request(_session_id(request)), f"resp_{_digest(time.time_ns())}")
        if not ask.stream:
            return JSONResponse(response_replies.response(await turn.play()))
        await turn.prepare()
        return StreamingResponse(_response_stream(turn), media_type="text/event-stream")

    def remember(self, reply: Reply) -> None:
        """Keep a response, to be gone on with by its id; the oldest are forgotten."""
        if not reply.ask.store or not reply.id.startswith("resp_"):
            return
        calls = tuple(ToolCall(id, *call) for id, call in zip(reply.call_ids, reply.answer.calls, strict=True))
        text = (Words(reply.answer.text),) if reply.answer.text else ()
        # instructions are those of each request, and are not carried on
        said = [s for i, s in enumerate(reply.ask.said) if i > 0 or s.role != "system"]
        self._said[reply.id] = (*said, Said("assistant", text, calls))
        while len(self._said) > _KEPT_RESPONSES:
            self._said.popitem(last=False)


class _Turn:
    """One request on its way through a session."""

    def __init__(self, service: Service, ask: Ask, session: Session, id: str) -> None:
        self.service, self.ask, self.session, self.id = service, ask, session, id
        self.served: Served = service.models.get(ask.model)
        self._messages: tuple[Message, ...] | None = None

    async def prepare(self) -> None:
        """Open the pictures and check the request, while a refusal can still have a status."""
        self._messages = await self.session.messages(self.ask, self.service.pictures)

    async def play(self) -> Reply:
        """Sample and record. Raises Refusal."""
        async with self.session.lock:
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
            self.session.record(
                kept, self._messages, answer, call_ids, time.perf_counter() - begin, warnings,
            )  # fmt: skip
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
                f"{sampled.needed} tokens.", param="messages", code="context_length_exceeded",
            )  # fmt: skip
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


async def _json(request: Request, *, empty: bool = False) -> Any:
    """The body as JSON. The content type is asked for, since a web page elsewhere can't send it unasked."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY:
        raise Refusal(f"the request has more than {MAX_BODY >> 20} MiB", status=413)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise Refusal(f"the request has more than {MAX_BODY >> 20} MiB", status=413)
    if not data and empty:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal("the content type must be application/json", status=415)
    try:
        body = json.loads(data)
    except ValueError as error:
        raise Refusal(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refusal("the body must be a JSON object")
    return body


def _session_id(request: Request) -> str | None:
    return request.path_params.get("session") or request.headers.get(SESSION_HEADER)


def _about(session: Session) -> dict[str, Any]:
    return {
        "session": session.id, "episode_id": session.episode_id, "turns": len(session.turns),
        "base_path": f"/sessions/{session.id}/v1",
    }  # fmt: skip


def _truncates(params: SamplingParams) -> bool:
    return params.top_p < 1 or params.top_k > 0


def _digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:24]


def _seed(run_seed: int, session: str, turn: int) -> int:
    """The same session of the same run draws the same."""
    return int.from_bytes(hashlib.sha256(f"{run_seed}/{session}/{turn}".encode()).digest()[:8]) >> 1
