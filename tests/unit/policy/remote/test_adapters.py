"""Adapters in a server that is not ours: its refusals in its own words, and what to do about each."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest

from cuarl.errors import SamplerError
from cuarl.policy.remote.openai import OpenAISampler

RANK = json.dumps(
    {
        "error": {
            "message": "Call to add_lora method failed: Worker failed with error 'LoRA rank 32 is greater than "
            "max_lora_rank 16.'",
            "type": "InternalServerError",
            "param": None,
            "code": 500,
        }
    }
)
"""As vLLM 0.32 says it."""


class Loader:
    """A server's side of adapters; ``refusal`` is status and text for what is loaded."""

    def __init__(self, refusal: tuple[int, str] | None = None) -> None:
        self.refusal, self.loaded, self.asked = refusal, list[str](), list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        verb = request.url.path.rsplit("/", 1)[1].removesuffix("_lora_adapter")
        name = json.loads(request.content)["lora_name"]
        self.asked.append(f"{verb} {name}")
        if verb == "load":
            if self.refusal:
                return httpx.Response(self.refusal[0], text=self.refusal[1])
            self.loaded.append(name)
        elif name not in self.loaded:
            return httpx.Response(404, json={"error": "no such adapter"})
        else:
            self.loaded.remove(name)
        return httpx.Response(200, text="Success")


def with_loader(loader: Loader, *steps: Any) -> None:
    async def run() -> None:
        sampler = OpenAISampler("http://server/v1", "base", transport=httpx.MockTransport(loader))
        for step in steps:
            await step(sampler)
        await sampler.close()

    anyio.run(run)


def load(name: str) -> Any:
    return lambda sampler: sampler.load_adapter(name, f"/runs/{name}")


@pytest.mark.parametrize(
    ("status", "text", "hint"),
    [
        (500, RANK, "vLLM: --max-lora-rank 32"),
        (404, '{"detail":"Not Found"}', "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"),
        (400, "Loading lora x failed: No adapter found for /runs/x", "must be able to read it"),
        (500, "[Errno 13] Permission denied: '/runs/x/adapter_config.json'", "must be able to read it"),
        (
            400,
            "expected target modules in [...] but received visual.blocks.0.attn.qkv",
            "--enable-tower-connector-lora",
        ),
    ],
)
def test_refused_adapter_is_told_in_the_servers_words_with_what_fixes_it(status: int, text: str, hint: str) -> None:
    with pytest.raises(SamplerError, match=rf"does not load the adapter \({status}\)") as caught:
        with_loader(Loader((status, text)), load("x"))
    assert text[:40] in caught.value.what
    assert hint in str(caught.value.hint)


def test_adapter_of_the_step_before_is_unloaded_and_the_last_one_at_the_end() -> None:
    loader = Loader()
    with_loader(loader, load("s1"), load("s2"), lambda s: s.release_adapter(), lambda s: s.release_adapter())
    assert loader.asked == ["load s1", "load s2", "unload s1", "unload s2"]
    assert loader.loaded == []


def test_adapter_that_the_server_has_lost_is_as_good_as_unloaded() -> None:
    loader = Loader()
    with_loader(loader, load("s1"), lambda s: loader.loaded.clear() or s.endpoint.close(), load("s2"))
    assert loader.loaded == ["s2"]
