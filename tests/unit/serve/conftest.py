"""A service over a small policy in this process, and clients that reach it without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import Message, SamplerCapabilities, SampleRequest
from cuarl.policy.sampling.local import LocalSampler
from cuarl.serve.app import Service
from cuarl.serve.models import Models, Served
from cuarl.serve.pictures import Pictures
from cuarl.serve.sessions import Sessions
from cuarl.trajectory import Sampled, Trajectory
from cuarl.types import Screenshot
from tests.unit.policy.conftest import qwen3, qwen3_folder, tokenizer  # noqa: F401


@dataclass
class Kept:
    """What a service recorded, newest record of each episode."""

    episodes: dict[str, Trajectory] = field(default_factory=dict)
    pictures: dict[str, Screenshot] = field(default_factory=dict)

    async def save(self, trajectory: Trajectory, pictures: Mapping[str, Screenshot]) -> None:
        self.episodes[trajectory.episode_id] = trajectory
        self.pictures |= pictures


class Reciter:
    """A sampler that says given texts in turn, tokenised as if they had been sampled, at half a nat a token."""

    def __init__(self, policy: QwenVLPolicy, *texts: str) -> None:
        self.policy, self.texts, self.asked = policy, list(texts), list[tuple[Message, ...]]()

    @property
    def capabilities(self) -> SamplerCapabilities:
        return SamplerCapabilities(token_ids=True, logprobs=True, images=True)

    async def sample(self, request: SampleRequest) -> Sampled:
        self.asked.append(request.messages)
        said = self.policy.written(request.messages, self.texts.pop(0))
        return said.model_copy(update={"logprobs": tuple(-0.5 for _ in said.token_ids)})

    async def close(self) -> None:
        pass


@dataclass
class Place:
    policy: QwenVLPolicy
    kept: Kept = field(default_factory=Kept)

    def service(self, *texts: str, hosts: Any = (), transport: Any = None, **changes: Any) -> Service:
        sampler: Any = Reciter(self.policy, *texts) if texts else LocalSampler(self.policy)
        models = changes.pop("models", None) or Models(Served("small", sampler, self.policy.decode))
        sessions = Sessions(self.kept.save, run_id="run", prefix="run")
        return Service(models, sessions, Pictures(hosts, transport=transport), **changes)

    def with_client(self, service: Service, work: Callable[[httpx.AsyncClient], Any], **headers: str) -> Any:
        async def run() -> Any:
            async with client(service, **headers) as http:
                return await work(http)

        return anyio.run(run)


@asynccontextmanager
async def client(service: Service, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(service.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as http:
        yield http


@pytest.fixture
def place(qwen3: QwenVLPolicy, qwen3_folder: Path) -> Place:  # noqa: F811
    return Place(qwen3)
