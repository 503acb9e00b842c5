"""The two engines on one model, and what the parts of the benchmark share."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
import torch

from benchmarks.against_vllm.server import NAME, Server
from benchmarks.real_sizes import noise, play
from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.probe import probe
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampleRequest, SamplingParams, Text
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.trajectory import Sampled
from cuarl.types import Screenshot

ENGINES = ("in process", "vllm")
GRAIN = 8
"""Pixels of a square of the pictures: they go to the server as PNG, and real screens can be compressed."""


@dataclass
class Bench:
    """A policy here, the same model behind a server, and the episodes that both are given."""

    policy: TransformersPolicy
    server: Server
    size: Size
    answer_tokens: int
    base: Path
    """The model, without an adapter."""
    folder: Path
    """For adapters, in memory."""
    gpu: str
    rows: Sequence[int]
    """How many answers at a time throughput is measured with."""
    row_tokens: int
    steps: int
    """How many steps are timed where there are several."""
    played: int = 0
    step: int = 0
    loaded: str | None = None
    """The adapter that the server has."""
    kept: dict[str, Batch] = field(default_factory=dict)
    """The last batch of each engine before any update."""

    @cached_property
    def local(self) -> LocalSampler:
        return LocalSampler(self.policy)

    @cached_property
    def remote(self) -> OpenAISampler:
        """The client that ``--model-base-url`` uses, which has found out what the server gives."""
        policy = self.policy
        sampler = OpenAISampler(
            self.server.api, NAME, renderer=policy, placeholders=policy.special.suppressed, max_connections=128
        )

        async def ask() -> None:
            await probe(sampler)
            await sampler.close()

        anyio.run(ask)
        return sampler

    @cached_property
    def learner(self) -> Learner:
        return Learner(self.policy, LearnerConfig(batch=BatchConfig(max_tokens=8192), gradient_checkpointing=True))

    def sampler(self, engine: str) -> Any:
        if engine == "in process":
            return self.local
        self.remote.version = self.policy.version
        return self.remote

    def forget(self) -> None:
        """As after an update: neither engine knows a prompt."""
        self.policy.updated()
        self.policy.forget_prompts()
        self.server.post("reset_prefix_cache")

    def play(self, engine: str, attempts: int = 4, turns: int = 5) -> Batch:
        """One group of episodes that nobody has seen. Numbers stay even, since they decide which attempts succeed."""
        self.played += 100
        return play(
            self.sampler(engine),
            formats.get("qwen3-vl"),
            self.size,
            self.answer_tokens,
            attempts=attempts,
            turns=turns,
            first=self.played,
            grain=GRAIN,
        )

    def answers(self, engine: str, requests: Sequence[SampleRequest]) -> list[Sampled]:
        """Answers to all requests at once, in their order. Raises what the samplers raise."""
        sampler, found = self.sampler(engine), dict[int, Sampled]()
        join = sampler.join if engine == "in process" else nullcontext

        async def one(i: int, request: SampleRequest) -> None:
            answer = await sampler.sample(request)
            assert not isinstance(answer, PromptTooLong)
            found[i] = answer

        async def work() -> None:
            # all are counted before any asks, or the first would be answered alone
            with ExitStack() as stack:
                for _ in requests:
                    stack.enter_context(join())
                async with anyio.create_task_group() as group:
                    for i, request in enumerate(requests):
                        group.start_soon(one, i, request)
            await sampler.close()

        anyio.run(work)
        return [found[i] for i in range(len(requests))]

    def requests(self, count: int, tokens: int, *, temperature: float = 1.0, first: int = 0) -> list[SampleRequest]:
        """Prompts with a screenshot each, of which eight differ."""
        screens = [Screenshot(noise((first + i % 8, 7), self.size, GRAIN)) for i in range(min(count, 8))]
        params = SamplingParams(max_tokens=tokens, temperature=temperature)
        return [
            SampleRequest((Message("user", (Picture(screens[i % 8]), Text("Turn on Wi-Fi."))),), params, seed=first + i)
            for i in range(count)
        ]

    def memory_gib(self) -> float | None:
        """What is taken of the server's GPU."""
        if not torch.cuda.is_available():
            return None
        words = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", self.gpu]
        return round(int(subprocess.run(words, capture_output=True, text=True, check=True).stdout) / 1024, 2)


def pictures(requests: Sequence[SampleRequest]) -> dict[str, Screenshot]:
    """The pictures of prompts by digest."""
    shown = [p.screenshot for r in requests for m in r.messages for p in m.parts if isinstance(p, Picture)]
    return {one.digest: one for one in shown}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    _synchronize()
    start = time.perf_counter()
    found = work()
    _synchronize()
    return time.perf_counter() - start, found


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
