"""A chat-completions endpoint that gives fixed answers as text only: what a hosted model gives."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


class ChatServer:
    """Answers the n-th picture of a conversation with the n-th text, the last one from then on.

    ``asked`` keeps the requests.
    """

    def __init__(self, *answers: str, model: str = "recited") -> None:
        self.answers, self.model = answers, model
        self.asked: list[dict[str, Any]] = []
        self._turn = 0

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
            ]
        )

    async def _models(self, request: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": [{"id": self.model, "object": "model"}]})

    async def _chat(self, request: Request) -> JSONResponse:
        body = await request.json()
        self.asked.append(body)
        pictures = [m for m in body["messages"] if isinstance(m["content"], list)]
        text = "hi"
        if pictures:
            text = self.answers[min(self._turn, len(self.answers) - 1)]
            self._turn += 1
        message = {"role": "assistant", "content": text}
        return JSONResponse(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": self.model,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )
