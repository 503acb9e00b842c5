"""A server beside a run: its model is told from the adapters that stand there, and a run's own are forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest

from cuarl.config.load import resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.workflow.endpoint import Trained, _begin


class Server:
    """Serves these models, each with the one that it is an adapter of, and forgets adapters."""

    def __init__(self, **models: str | None) -> None:
        self.models: dict[str, str | None] = models

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/models"):
            listed = [{"id": name.replace("_", "-"), "parent": parent} for name, parent in self.models.items()]
            return httpx.Response(200, json={"data": listed})
        body = json.loads(request.content)
        if request.url.path.endswith("/unload_lora_adapter"):
            del self.models[body["lora_name"].replace("-", "_")]
            return httpx.Response(200, text="Success")
        message = {"role": "assistant", "content": body["model"]}
        return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    def sampler(self, model: str) -> OpenAISampler:
        return OpenAISampler("http://server/v1", model, transport=httpx.MockTransport(self))


def begun(server: Server, **fields: Any) -> str:
    config = resolve(flags={"model_base_url": "http://server/v1", **fields}).config
    sampler = server.sampler(config.served.served_model_name or config.model_name)
    anyio.run(_begin, sampler, config)
    return sampler.model


def test_the_only_model_is_taken_whatever_it_is_called_there() -> None:
    assert begun(Server(other=None)) == "other"


def test_adapters_that_an_earlier_run_left_are_not_taken_for_the_model() -> None:
    assert begun(Server(other=None, s1_step_000001="other", s1_step_000002="other")) == "other"


def test_an_adapter_that_is_asked_for_by_name_is_taken() -> None:
    assert begun(Server(other=None, mine="other"), served_model_name="mine") == "mine"


def test_of_several_models_the_name_decides() -> None:
    assert begun(Server(tiny=None, other=None)) == "tiny"
    with pytest.raises(ConfigError, match="serves no model"):
        begun(Server(one=None, other=None))


def test_a_run_that_goes_on_has_the_server_forget_what_it_left_there_and_nothing_else() -> None:
    server = Server(base=None, k1_step_000003="base", k1x_step_000001="base", theirs="base")
    learner: Any = SimpleNamespace(accelerator=SimpleNamespace(is_main_process=True))
    trained = Trained(ExperimentConfig(), learner, server.sampler("base"), Path("runs/k1/adapters"))
    anyio.run(trained._forget_earlier)
    assert list(server.models) == ["base", "k1x_step_000001", "theirs"]


def test_a_server_that_is_gone_at_the_end_is_no_error() -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("gone")

    learner: Any = SimpleNamespace(accelerator=SimpleNamespace(is_main_process=True))
    sampler = OpenAISampler("http://server/v1", "base", transport=httpx.MockTransport(gone))
    sampler._adapter_name = "k1-step-000001"
    told: list[str] = []
    trained = Trained(ExperimentConfig(), learner, sampler, Path("runs/k1/adapters"), told.append)

    async def run() -> None:
        async with trained.connected():
            pass

    anyio.run(run)
    assert len(told) == 1 and "keeps the run's last adapter" in told[0]


def sleeping(told: list[str], **fields: Any) -> Trained:
    def reply(request: httpx.Request) -> httpx.Response:
        told.append(request.url.path + (f"?{request.url.query.decode()}" if request.url.query else ""))
        if request.url.path.endswith("/models"):
            return httpx.Response(200, json={"data": [{"id": "base", "parent": None}]})
        if "v1" in request.url.path:
            message = {"role": "assistant", "content": "hi"}
            return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})
        return httpx.Response(200, text="")

    config = resolve(flags={"vllm_python": "python3", **fields}).config
    sampler = OpenAISampler("http://server/v1", "base", transport=httpx.MockTransport(reply))
    learner: Any = SimpleNamespace(accelerator=SimpleNamespace(is_main_process=True))
    return Trained(config, learner, sampler, Path("runs/k1/adapters"))


def test_a_server_of_ones_own_sleeps_while_nobody_asks_and_is_woken_for_who_does() -> None:
    told: list[str] = []

    async def steps() -> None:
        trained = sleeping(told, vllm_sleep=True)
        source = trained.source()
        await source.refresh(0)
        await source.rest()
        await source.rest()
        await source.refresh(0)
        await source.rest()

    anyio.run(steps)
    assert [path for path in told if "v1" not in path] == ["/sleep?level=1", "/wake_up", "/sleep?level=1"]


def test_one_that_is_not_told_to_sleep_does_not() -> None:
    told: list[str] = []

    async def steps() -> None:
        source = sleeping(told).source()
        await source.refresh(0)
        await source.rest()

    anyio.run(steps)
    assert [path for path in told if "v1" not in path] == []
