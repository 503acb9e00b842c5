"""What a server gives and takes, found out by asking; and what to do without."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import httpx
import pytest
import stamina

from cuarl.errors import PrerequisiteError, SamplerError
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.probe import check_draws, probe
from cuarl.policy.remote.wire import BIAS, NEUTRAL, EndpointFeatures
from tests.unit.policy.remote.test_openai import FULL, OurPrompt, Server, completion


@pytest.fixture(autouse=True)
def _no_waiting() -> Any:
    with stamina.set_testing(True, attempts=3):
        yield


def probed(server: Any, **settings: Any) -> EndpointFeatures:
    return anyio.run(probe, server.sampler(**{"features": None, **settings}))


def answers(*logprobs: float, words: str = "abcdefgh") -> tuple[int, dict[str, str], Any]:
    content = [{"token": word, "logprob": p} for word, p in zip(words, logprobs, strict=False)]
    return completion(logprobs={"content": content}, token_ids=[5] * len(logprobs))


def test_probing_finds_what_a_server_gives() -> None:
    assert probed(Server(completion())) == EndpointFeatures(token_ids=True, logprobs=True)
    plain = completion(token_ids=None, logprobs=None)
    assert probed(Server(plain)) == EndpointFeatures()


@pytest.mark.parametrize(
    ("greedy", "almost", "scaled"),
    [
        pytest.param(answers(-0.5, -1.0), answers(-1e-6, 0.0), True, id="close to certain"),
        pytest.param(answers(-3.1, -2.8), answers(-0.6, -0.1), True, id="ties that are near remain"),
        pytest.param(answers(-3.1, -2.8), answers(-3.12, -2.9), False, id="the same"),
        pytest.param(answers(-3.1, -0.1), answers(-3.12, -9.0, words="xy"), False, id="another way after a tie"),
        pytest.param(answers(-1e-4, 0.0), answers(-1e-6, 0.0), False, id="certain anyway, which tells nothing"),
        pytest.param(answers(), answers(), False, id="none"),
    ],
)
def test_probing_sees_whether_the_temperature_is_in_the_logprobs(greedy: Any, almost: Any, scaled: bool) -> None:
    assert probed(Server(completion(), greedy, almost)).scaled_logprobs is scaled


def test_probing_does_without_what_a_server_rejects() -> None:
    server = Server((400, {}, {"error": "unknown field return_token_ids"}), completion(token_ids=None))
    assert probed(server) == EndpointFeatures(logprobs=True)
    assert "return_token_ids" in server.requests[0] and "return_token_ids" not in server.requests[1]


class Strict:
    """A server that refuses fields that it does not know, in words of its own; ``takes`` says of one value whether it
    may be."""

    def __init__(self, refuse: Callable[[set[str]], Any], *unknown: str, takes: Any = None, status: int = 400) -> None:
        self.refuse, self.unknown, self.takes, self.status = refuse, set(unknown), takes or (lambda body: True), status
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        data = (await receive())["body"]
        if scope["path"].endswith("/models"):
            status, reply = 200, {"data": [{"id": "phone-7b"}]}
        elif not scope["path"].endswith("/chat/completions"):
            status, reply = 404, {"detail": "Not Found"}
        else:
            self.requests.append(body := json.loads(data))
            strange = self.unknown & body.keys()
            if not self.takes(body):
                strange |= {"top_k"}
            status, _, reply = (self.status, {}, self.refuse(strange)) if strange else completion()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(reply).encode()})

    def sampler(self, **settings: Any) -> OpenAISampler:
        return OpenAISampler("http://server/v1/", "phone-7b", transport=httpx.ASGITransport(self), **settings)


def in_words(names: set[str]) -> Any:
    return {"error": {"message": f"Unrecognized request arguments supplied: {', '.join(sorted(names))}"}}


def by_param(names: set[str]) -> Any:
    """As servers say it that name one field, and repeat the rest of the request in their words."""
    everything = ", ".join([*NEUTRAL, BIAS, "logprobs", "return_token_ids"])
    return {"error": {"message": f"bad value; known are {everything}", "param": min(names)}}


def by_location(names: set[str]) -> Any:
    everything = dict.fromkeys((*NEUTRAL, "logprobs"), 0)
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "input": everything} for name in names]}


@pytest.mark.parametrize("refuse", [in_words, by_param, by_location])
@pytest.mark.parametrize("status", [400, 422])
def test_fields_that_a_server_refuses_by_name_are_left_out_and_no_others(refuse: Any, status: int) -> None:
    server = Strict(refuse, "min_p", "repetition_penalty", status=status)
    features = probed(server)
    assert set(features.left_out) == {"min_p", "repetition_penalty"}
    assert features.token_ids and features.logprobs
    assert {name: server.requests[-1][name] for name in ("top_k", "presence_penalty", "frequency_penalty")} == {
        "top_k": 0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }


def test_a_server_that_calls_no_cut_off_minus_one_is_told_so() -> None:
    def takes(body: Any) -> bool:
        return body.get("top_k") == -1

    features = probed(Strict(lambda _: {"message": "top_k must be -1 (disable), or at least 1"}, takes=takes))
    assert (features.top_k_off, features.left_out) == (-1, ())


def test_a_server_that_does_not_say_what_is_wrong_loses_one_thing_after_the_other() -> None:
    server = Strict(lambda _: {"message": "bad request"}, "repetition_penalty")
    features = probed(server)
    assert set(features.left_out) == set(NEUTRAL)
    asked = [("return_token_ids" in r, "logprobs" in r) for r in server.requests[:3]]
    assert asked == [(True, True), (False, True), (False, False)]


def test_a_server_that_refuses_all_is_an_error_and_not_asked_for_ever() -> None:
    server = Strict(lambda _: {"message": "no"}, "model")
    with pytest.raises(PrerequisiteError, match="answered 400"):
        probed(server)
    assert len(server.requests) < 10


@pytest.mark.parametrize(
    "reply", [(529, {}, {"error": "overloaded"}), (503, {}, {}), (200, {}, {"error": {"code": 529}})]
)
def test_b21_a_refusal_for_the_moment_at_the_start_is_no_end(reply: Any) -> None:
    assert probed(Server(reply, reply, completion())).token_ids


# --- ids that must not be sampled -------------------------------------------------------------------------------------


class Renderer(OurPrompt):
    """Our own rendering of the probe's prompt, with ids that are never sampled."""

    def __init__(self, *ids: int) -> None:
        super().__init__(*ids)
        self.screenshots = ()
        self.special = type("Special", (), {"suppressed": (7, 9), "image": 9, "eos": frozenset({5})})

    def shown(self, screenshot: Any) -> Any:
        return screenshot


def test_ids_that_are_never_sampled_are_ruled_out_where_the_prompt_is_ours() -> None:
    server = Server(completion())
    features = probed(server, renderer=Renderer(1, 2, 3))
    assert features.ours and BIAS not in features.left_out
    assert server.requests[-1][BIAS] == {"7": -100.0, "9": -100.0}


def test_ids_of_another_tokenizer_rule_nothing_out() -> None:
    server = Server(completion())
    features = probed(server, renderer=Renderer(1, 2, 4))
    assert not features.ours
    assert all(BIAS not in request for request in server.requests)


def test_a_server_that_takes_no_bias_is_sent_none() -> None:
    server = Strict(by_param, BIAS)
    features = probed(server, renderer=Renderer(1, 2, 3))
    assert features.ours and features.left_out == (BIAS,) and features.token_ids
    assert BIAS not in server.requests[-1]


def test_known_features_are_not_lost() -> None:
    assert probed(Server(completion()), features=FULL).scaled_logprobs


# --- draws ------------------------------------------------------------------------------------------------------------


def test_a_server_that_breaks_off_while_its_draws_are_tested_is_one_error() -> None:
    asked = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if len(asked) > 5:
            raise httpx.ReadError("gone")
        return httpx.Response(200, json=completion()[2])

    sampler = OpenAISampler("http://server/v1", "m", transport=httpx.MockTransport(handle), features=FULL)
    with pytest.raises(SamplerError, match="gave no answer: ReadError"):
        anyio.run(check_draws, sampler)


def test_a_server_that_lists_no_likeliest_tokens_is_not_tested_and_that_is_said() -> None:
    server = Strict(in_words, "top_logprobs")
    sampler = server.sampler(features=FULL)
    assert "was not tested" in anyio.run(check_draws, sampler).words
    assert anyio.run(check_draws, Server(completion()).sampler(features=FULL)).problem == ""


@pytest.mark.parametrize("honest", [True, False])
def test_draws_of_a_server_decide_whether_its_logprobs_are_kept(honest: bool) -> None:
    import random

    from tests.unit.policy.remote.test_draws import as_told, cut, reply

    def handle(request: httpx.Request) -> httpx.Response:
        seed = json.loads(request.content)["seed"]
        way = as_told if honest else cut(1)
        return httpx.Response(200, json=reply(random.Random(seed), way, 12))

    sampler = OpenAISampler("http://server/v1", "m", transport=httpx.MockTransport(handle), features=FULL)
    found = anyio.run(check_draws, sampler)
    assert (found.problem == "", sampler.capabilities.logprobs) == (honest, honest)
    assert found.positions > (0 if honest else 24 * 12 * 5), "what looks doubtful is looked at more closely"


def test_an_idle_connection_is_closed_before_the_server_does_it() -> None:
    from cuarl.policy.remote.http import KEPT_OPEN_S

    pool = Server(completion()).sampler(transport=None).endpoint._client._transport._pool  # type: ignore[union-attr]
    assert pool._keepalive_expiry == KEPT_OPEN_S < 5.0
