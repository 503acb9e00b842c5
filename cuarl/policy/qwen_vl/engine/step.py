"""One token more for every row: the forward pass, the draw and the bookkeeping, captured as one CUDA graph.

Everything that differs from token to token is read from tensors that stay where they are: tokens, lengths, pages, and
the chances that decide the draws, which depend on a row's seed and the number of its token alone
(``distribution.Chance``). So rows come and go, and grow, without another capture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from cuarl.policy.distribution import draw, log_softmax, truncate
from cuarl.policy.qwen_vl.engine.attention import paged_attention
from cuarl.policy.qwen_vl.engine.forward import run_layers
from cuarl.policy.qwen_vl.engine.pages import PAGE
from cuarl.policy.qwen_vl.engine.weights import Weights
from cuarl.policy.qwen_vl.fused.ops import rms_norm

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

CHANCES = 512
"""Chances held for each row; the next ones are written when these are used up."""

_STATE = ("tokens", "position", "lengths", "active", "table", "temperature", "top_k", "top_p", "chance", "drawn")


class Flight:
    """A token for every row that is on its way from the device."""

    def __init__(self, host: torch.Tensor, event: Any) -> None:
        self._host, self._event = host, event

    def read(self) -> tuple[list[int], list[float]]:
        """Tokens and their log-probabilities, one a row."""
        if self._event is not None:
            self._event.synchronize()
        return self._host[:, 0].long().tolist(), self._host[:, 1].tolist()


class Step:
    """The state of up to ``rows`` rows, and what makes the next token of each."""

    def __init__(
        self,
        policy: QwenVLPolicy,
        weights: Weights,
        buffer: Sequence[torch.Tensor],
        rows: int,
        width: int,
        *,
        truncated: bool,
        memory: Any = None,
    ) -> None:
        device = policy.device
        self.rows, self._policy, self._weights, self._buffer = rows, policy, weights, buffer
        self.truncated = truncated
        self._attend = paged_attention(rows, weights.heads, weights.kv_heads, weights.head_size, device)
        self.tokens, self.position, self.drawn, self.top_k = (
            torch.zeros(rows, dtype=torch.long, device=device) for _ in range(4)
        )
        self.lengths, self.active = (torch.zeros(rows, dtype=torch.int32, device=device) for _ in range(2))
        self.table = torch.zeros((rows, width), dtype=torch.int32, device=device)
        self.temperature, self.top_p = (torch.ones(rows, device=device) for _ in range(2))
        self.chance = torch.zeros((rows, CHANCES), dtype=torch.float64, device=device)
        self._out = torch.zeros((rows, 2), dtype=torch.float64, device=device)
        self._graph = None
        if device.type == "cuda":
            self._host = [torch.empty(self._out.shape, dtype=torch.float64, pin_memory=True) for _ in range(2)]
            self._events = [torch.cuda.Event() for _ in range(2)]
            self._graph = self._captured(memory)
        self._turn = 0

    def load(self, values: dict[str, torch.Tensor]) -> None:
        """Put rows into the first places; the others stand idle. ``values`` has each state's (rows, …) tensor."""
        for name in _STATE:
            state: torch.Tensor = getattr(self, name)
            value = values[name].to(state.device, state.dtype, non_blocking=True)
            state.zero_()
            state[: len(value), *([slice(value.shape[1])] if value.dim() > 1 else [])] = value
        self.temperature[len(values["tokens"]) :] = 1.0

    def move(self, other: Step, rows: Sequence[int]) -> None:
        """Take over ``rows`` of another step."""
        index = torch.tensor(rows, device=self.tokens.device)
        self.load({name: getattr(other, name).index_select(0, index) for name in _STATE})

    def more_pages(self, rows: Sequence[int], columns: Sequence[int], pages: Sequence[int]) -> None:
        """Write ``pages`` into the rows' tables at ``columns``."""
        device = self.table.device
        index = tuple(torch.tensor(x, device=device) for x in (rows, columns))
        self.table.index_put_(index, torch.tensor(pages, dtype=torch.int32, device=device))

    def stop(self, rows: Sequence[int]) -> None:
        """Let ``rows`` stand still: what they go on to write lies behind their end, or on the page for scratch."""
        if rows:
            self.active.index_fill_(0, torch.tensor(rows, device=self.active.device), 0)

    def launch(self) -> Flight:
        """Make the next token of every row. At most two may be in flight."""
        if self._graph is None:
            self._run()
            return Flight(self._out.clone(), None)
        self._graph.replay()
        self._turn ^= 1
        host, event = self._host[self._turn], self._events[self._turn]
        host.copy_(self._out, non_blocking=True)
        event.record()
        return Flight(host, event)

    def _captured(self, memory: Any) -> Any:
        aside, here = torch.cuda.Stream(), torch.cuda.current_stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            # compiles kernels and opens libraries, which a capture may not do
            self._run()
        here.wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # unless told, torch captures on a stream that it makes once, on the GPU of the first capture
        with torch.cuda.graph(graph, pool=memory, stream=aside, capture_error_mode="thread_local"):
            self._run()
        return graph

    def _run(self) -> None:
        weights, decoder = self._weights, self._policy.decoder
        page = self.table.gather(1, (self.lengths // PAGE).long()[:, None])[:, 0].long()
        slots, seen = page * PAGE + self.lengths % PAGE, self.lengths + 1
        hidden = decoder.embed(self.tokens[:, None])
        rotary = decoder.model.rotary_emb(hidden, self.position.expand(3, -1)[..., None])

        def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self._attend(q, keys, values, self.table, seen, weights.scale)
            return found

        angles = rotary[0][:, 0], rotary[1][:, 0]
        hidden = run_layers(weights, hidden[:, 0], angles, slots, self._buffer, attend)
        logits = decoder.logits(rms_norm(hidden, weights.norm, weights.eps))
        self._advance(log_softmax(logits, self.temperature[:, None], self._policy.suppressed()))

    def _advance(self, logprobs: torch.Tensor) -> None:
        if self.truncated:
            logprobs = truncate(logprobs, self.top_k, self.top_p)
        found = draw(logprobs, self.chance.gather(1, (self.drawn % CHANCES)[:, None])[:, 0])
        self.tokens.copy_(found.tokens)
        for count in (self.lengths, self.position, self.drawn):
            count.add_(self.active)
        self._out.copy_(torch.stack([found.tokens.double(), found.logprobs.double()], dim=1))
