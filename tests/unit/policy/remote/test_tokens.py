"""Token in, token out: against a reply that vLLM gave, and with a server that expands placeholders as it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest

from cuarl.errors import SamplerError
from cuarl.policy.load import load_renderer
from cuarl.policy.prompt import Prompt, Renderer
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.tokens import read_generated, unexpanded
from cuarl.policy.remote.wire import BIAS, EndpointFeatures
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText, SampleRequest, SamplingParams, Text
from cuarl.policy.spec import ModelSpec
from cuarl.trajectory import Sampled
from tests.unit.policy.conftest import qwen3_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import screen

RECORDED = json.loads(Path(__file__).with_name("generated_by_vllm.json").read_text(encoding="utf-8"))
FEATURES = EndpointFeatures(token_ids=True, logprobs=True, scaled_logprobs=True, tokens_in=True, ours=True)
ODD = (65, 66)
"""What was sampled as two tokens, and would be encoded otherwise."""


@pytest.fixture
def renderer(qwen3_folder: Path) -> Renderer:  # noqa: F811
    return load_renderer(ModelSpec(model=str(qwen3_folder)))


def asked(end: int, *, limit: int | None = None, stop: tuple[str, ...] = ()) -> SampleRequest:
    first, second = (Message("user", (Picture(screen(i)), Text("Go"))) for i in range(2))
    said = Message("assistant", (SampledText("never encoded", (*ODD, end)),))
    params = SamplingParams(max_tokens=4, temperature=0.5, top_k=7, stop=stop)
    return SampleRequest((first, said, second), params, seed=9, max_prompt_tokens=limit)


def answering(
    renderer: Renderer, change: Callable[[list[int]], list[int]] = list, **told: Any
) -> tuple[OpenAISampler, list[Any]]:
    """A sampler, and what its server was sent. The server expands placeholders, and may ``change`` the prompt.

    ``told`` is further said of the answer.
    """
    sent: list[Any] = []
    special = renderer.special

    def reply(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        sent.append((request.url.path, body))
        width = renderer.picture_tokens(64, 96)
        ids = [i for token in body["token_ids"] for i in [token] * (width if token == special.image else 1)]
        content = [{"token_id": i, "logprob": -0.5, "rank": 1} for i in (70, special.end_of_turn)]
        choice = {
            "token_ids": [70, special.end_of_turn],
            "finish_reason": "stop",
            "logprobs": {"content": content},
            **told,
        }
        return httpx.Response(200, json={"prompt_token_ids": change(ids), "choices": [choice]})

    sampler = OpenAISampler(
        "http://server/v1", "m", renderer=renderer, features=FEATURES, transport=httpx.MockTransport(reply), version=3
    )
    return sampler, sent


def test_what_vllm_was_sent_and_gave_is_read() -> None:
    expanded, image = tuple(RECORDED["reply"]["prompt_token_ids"]), 2927
    assert unexpanded(expanded, image) == RECORDED["sent"]["token_ids"]
    decoder: Any = SimpleNamespace(decode=lambda ids: f"{len(ids)} tokens")
    request = SampleRequest((), SamplingParams(max_tokens=6), seed=3)
    found = read_generated(RECORDED["reply"], Prompt(expanded, ()), request, FEATURES, decoder)
    assert found.exact and found.stop == "eos" and found.text == "6 tokens"
    assert len(found.token_ids) == 6 and found.logprobs is not None
    assert found.logprobs[1] == pytest.approx(-3.148253917694092)
    other = read_generated(RECORDED["reply"], Prompt(expanded[1:], ()), request, FEATURES, decoder)
    assert not other.exact


def test_a_past_answer_is_sent_as_it_was_sampled_and_pictures_as_one_placeholder(renderer: Renderer) -> None:
    sampler, sent = answering(renderer)
    request = asked(renderer.special.end_of_turn)
    found = anyio.run(sampler.sample, request)
    assert isinstance(found, Sampled)
    ((path, body),) = sent
    ids = body["token_ids"]
    assert path == "/inference/v1/generate"
    assert ids.count(renderer.special.image) == 2 == len(body["content_parts"])
    at = ids.index(ODD[0])
    assert tuple(ids[at : at + 3]) == (*ODD, renderer.special.end_of_turn)
    how = body["sampling_params"]
    assert (how["temperature"], how["top_k"], how["min_p"], how["seed"], how["logprobs"]) == (0.5, 7, 0.0, 9, 0)
    assert set(how[BIAS]) == {str(i) for i in renderer.special.suppressed}
    assert renderer.special.end_of_turn in how["stop_token_ids"]
    rendered = renderer.render(request.messages)
    assert isinstance(rendered, Prompt)
    assert found.exact and found.prompt_ids == rendered.ids and found.policy_version == 3
    assert found.logprobs == (-0.5, -0.5) and found.token_ids == (70, renderer.special.end_of_turn)


def test_a_server_that_expands_otherwise_is_not_exact(renderer: Renderer) -> None:
    sampler, _ = answering(renderer, lambda ids: [*ids[:5], ids[4], *ids[5:]])
    found = anyio.run(sampler.sample, asked(renderer.special.end_of_turn))
    assert isinstance(found, Sampled) and not found.exact


@pytest.mark.parametrize(("second", "exact"), [("default", True), ("step-7", False)])
def test_an_answer_of_two_weights_is_not_exact_and_that_is_said(
    second: str, exact: bool, renderer: Renderer, caplog: pytest.LogCaptureFixture
) -> None:
    spans = [{"version": "default", "start": 0, "end": 1}, {"version": second, "start": 1, "end": 2}]
    sampler, _ = answering(renderer, weight_versions=spans)
    found = anyio.run(sampler.sample, asked(renderer.special.end_of_turn))
    assert isinstance(found, Sampled) and found.exact is exact
    assert ("weights were exchanged while it sampled (default → step-7)" in caplog.text) is not exact


def test_a_prompt_that_is_too_long_is_not_sent(renderer: Renderer) -> None:
    sampler, sent = answering(renderer)
    assert isinstance(anyio.run(sampler.sample, asked(renderer.special.end_of_turn, limit=5)), PromptTooLong)
    assert sent == []


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"choices": [{"token_ids": None, "finish_reason": "stop"}]},
        {"choices": [{"token_ids": [70], "finish_reason": "stop", "weight_versions": [1]}]},
    ],
)
def test_what_is_no_answer_is_an_error(renderer: Renderer, reply: Any) -> None:
    request = asked(renderer.special.end_of_turn)
    with pytest.raises(SamplerError):
        read_generated(reply, Prompt((1,), ()), request, FEATURES, renderer)
