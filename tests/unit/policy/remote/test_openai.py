import json
from collections.abc import Callable
from typing import Any

import anyio
import httpx
import pytest
import stamina

from cuarl.errors import ConfigError, PrerequisiteError, SamplerError
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.wire import EndpointFeatures
from cuarl.policy.sampler import Message, PromptTooLong, SampledText, SampleRequest, SamplingParams, Text
from cuarl.trajectory import Sampled
from cuarl.types import Screenshot
from tests.unit.policy.pictures import messages, screen

KEY = "sk-canary-8f3e1c"
FULL = EndpointFeatures(token_ids=True, logprobs=True, scaled_logprobs=True)


class Server:
    """A small chat-completions server in this process: an ASGI application that plays its replies in turn."""

    def __init__(self, *replies: tuple[int, dict[str, str], Any]) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        self.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        if scope["path"].endswith("/models"):
            status, headers, reply = 200, {}, {"data": [{"id": "phone-7b"}]}
        elif not scope["path"].endswith("/chat/completions"):
            status, headers, reply = 404, {}, {"detail": "Not Found"}
        else:
            self.requests.append(json.loads(body))
            status, headers, reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        data = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
        head = [(k.encode(), v.encode()) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": data})

    def sampler(self, **changes: Any) -> OpenAISampler:
        settings: dict[str, Any] = {"api_key": KEY, "features": FULL, "transport": httpx.ASGITransport(self)}
        return OpenAISampler("http://server/v1/", "phone-7b", **(settings | changes))


def completion(text: str = "hi", **changes: Any) -> tuple[int, dict[str, str], Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", "token_ids": [5, 6]}
    choice["logprobs"] = {"content": [{"token": "h", "logprob": -0.5}, {"token": "i", "logprob": -1.0}]}
    body = {"choices": [choice | changes], "prompt_token_ids": [1, 2, 3], "usage": {"prompt_tokens": 3}}
    return 200, {}, body


def ask(server: Server, request: SampleRequest | None = None, **settings: Any) -> Sampled | PromptTooLong:
    sampler = server.sampler(**settings)
    return anyio.run(sampler.sample, request or SampleRequest(messages("go"), SamplingParams(), seed=3))


@pytest.fixture(autouse=True)
def _no_waiting() -> Any:
    with stamina.set_testing(True, attempts=3):
        yield


def test_an_answer_comes_with_ids_and_logprobs_where_the_server_gives_them() -> None:
    server = Server(completion())
    sampled = ask(server, version=4, name="mine")
    assert sampled == Sampled(
        prompt_ids=(1, 2, 3),
        token_ids=(5, 6),
        logprobs=(-0.5, -1.0),
        text="hi",
        stop="eos",
        policy="mine",
        policy_version=4,
        exact=True,
    )
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("encoding", ["png", "jpeg"])
def test_pictures_are_sent_as_data_uris_in_order(encoding: str) -> None:
    import base64

    server = Server(completion())
    shot = screen(1)
    params = SamplingParams(temperature=0.5, top_p=0.9, top_k=20, max_tokens=7, stop=("x",))
    sampled = ask(server, SampleRequest(messages("go", shot, screen(2)), params, seed=3), encoding=encoding)
    sent = server.requests[0]
    assert {k: sent[k] for k in ("model", "temperature", "top_p", "top_k", "max_tokens", "stop", "seed")} == {
        "model": "phone-7b",
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 7,
        "stop": ["x"],
        "seed": 3,
    }
    system, user = sent["messages"]
    assert system == {"role": "system", "content": "You act on a phone."}
    assert [c["type"] for c in user["content"]] == ["image_url", "image_url", "text"]
    head, data = user["content"][0]["image_url"]["url"].split(",", 1)
    assert head == f"data:image/{encoding};base64"
    seen = Screenshot.decode(base64.b64decode(data))
    assert (seen.digest == shot.digest) == (encoding == "png")
    assert isinstance(sampled, Sampled) and [i.digest for i in sampled.images] == [shot.digest, screen(2).digest]


@pytest.mark.parametrize(
    ("features", "params", "given"),
    [
        pytest.param(FULL, SamplingParams(temperature=0.5), True, id="scaled by the server"),
        pytest.param(EndpointFeatures(token_ids=True, logprobs=True), SamplingParams(), True, id="nothing to scale"),
        pytest.param(
            EndpointFeatures(token_ids=True, logprobs=True), SamplingParams(temperature=0.5), False, id="unscaled"
        ),
        pytest.param(
            EndpointFeatures(token_ids=True, logprobs=True), SamplingParams(top_p=0.9), False, id="not renormalised"
        ),
        pytest.param(EndpointFeatures(token_ids=True), SamplingParams(), False, id="none"),
    ],
)
def test_logprobs_are_kept_only_where_they_are_those_of_the_draw(
    features: EndpointFeatures, params: SamplingParams, given: bool
) -> None:
    sampled = ask(Server(completion()), SampleRequest(messages("go"), params, seed=0), features=features)
    assert isinstance(sampled, Sampled) and (sampled.logprobs is not None) == given


def test_text_alone_is_not_exact() -> None:
    reply = completion()
    del reply[2]["choices"][0]["token_ids"]
    sampled = ask(Server(reply))
    assert isinstance(sampled, Sampled)
    assert (sampled.exact, sampled.token_ids, sampled.logprobs) == (False, (), None)


@pytest.mark.parametrize(("prompt_ids", "exact"), [([1, 7, 8, 2], True), ([1, 78, 2], False)])
def test_an_answer_after_a_retokenised_one_is_not_exact(prompt_ids: list[int], exact: bool) -> None:
    reply = completion()
    reply[2]["prompt_token_ids"] = prompt_ids
    past = (Message("assistant", (SampledText("he", (7, 8)),)), Message("user", (Text("and?"),)))
    sampled = ask(Server(reply), SampleRequest((*messages("go"), *past), SamplingParams(), seed=0))
    assert isinstance(sampled, Sampled) and sampled.exact == exact


@pytest.mark.parametrize(
    ("changes", "stop"),
    [
        ({"finish_reason": "length"}, "length"),
        ({"stop_reason": "END"}, "stop_string"),
        ({"stop_reason": 151645}, "eos"),
        ({"message": {"content": "see <|image_pad|>"}}, "special_token"),
    ],
)
def test_why_an_answer_stopped(changes: dict[str, Any], stop: str) -> None:
    sampled = ask(Server(completion(**changes)))
    assert isinstance(sampled, Sampled) and sampled.stop == stop


@pytest.mark.parametrize("status", [429, 503, 529])
def test_b21_a_refusal_for_the_moment_is_tried_again(status: int) -> None:
    server = Server((status, {"retry-after": "0"}, {"error": {"message": "busy"}}), completion())
    assert isinstance(ask(server), Sampled)
    assert len(server.requests) == 2


@pytest.mark.parametrize("header", ["7", "date"])
def test_a_server_is_given_the_time_it_asks_for(header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import email.utils
    import time

    from cuarl.policy.remote import http

    monkeypatch.setattr(http.random, "random", lambda: 0.5)
    value = email.utils.formatdate(time.time() + 7.5, usegmt=True) if header == "date" else header
    refused = http._Refused(httpx.Response(429, headers={"retry-after": value}))
    wait = http._wait_before_retry(refused)
    assert isinstance(wait, float) and 7 <= wait <= 9
    assert http._wait_before_retry(http._Refused(httpx.Response(503))) is True


@pytest.mark.parametrize("status", [400, 401, 404, 500, 502, 504])
def test_other_errors_are_told_at_once_with_status_and_body_and_without_the_key(status: int) -> None:
    server = Server((status, {}, {"error": f"bad {KEY} " + "x" * 5000}))
    with pytest.raises(SamplerError, match=f"answered {status}: .*bad") as caught:
        ask(server)
    assert len(server.requests) == 1
    assert KEY not in str(caught.value) and len(str(caught.value)) < 600


def test_a_server_that_keeps_refusing_is_an_error() -> None:
    server = Server((429, {}, {"error": {"message": "busy"}}))
    with pytest.raises(SamplerError, match="answered 429"):
        ask(server)
    assert len(server.requests) == 3


def _failing(error: type[httpx.TransportError]) -> tuple[httpx.MockTransport, list[int]]:
    calls: list[int] = []

    def handle(request: httpx.Request) -> httpx.Response:
        calls.append(1)
        raise error("broken")

    return httpx.MockTransport(handle), calls


@pytest.mark.parametrize(
    ("error", "calls"), [(httpx.ConnectError, 3), (httpx.ReadTimeout, 1), (httpx.RemoteProtocolError, 1)]
)
def test_a_request_is_sent_again_only_if_it_never_arrived(error: type[httpx.TransportError], calls: int) -> None:
    transport, made = _failing(error)
    with pytest.raises(SamplerError, match=error.__name__):
        ask(Server(completion()), transport=transport)
    assert len(made) == calls


@pytest.mark.parametrize(
    "message",
    [
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4872 in the "
            "messages)."
        ),
        "The decoder prompt (length 5000) is longer than the maximum model length; context length 4096",
        "max_tokens=128 does not fit: 5000 tokens in the prompt, context_length 4096",
    ],
)
def test_a_prompt_beyond_the_context_is_no_error(message: str) -> None:
    assert ask(Server((400, {}, {"error": {"message": message}}))) == PromptTooLong(needed=5000, limit=4096)


def test_a_prompt_beyond_the_limit_asked_for_is_reported_by_the_servers_count() -> None:
    request = SampleRequest(messages("go"), SamplingParams(), seed=0, max_prompt_tokens=2)
    assert ask(Server(completion()), request) == PromptTooLong(needed=3, limit=2)


@pytest.mark.parametrize("reply", ["<html>", {"choices": []}, {"choices": [{}]}, [1]])
def test_a_reply_that_is_no_completion_is_an_error(reply: Any) -> None:
    with pytest.raises(SamplerError, match="the reply is no"):
        ask(Server((200, {}, reply)))


def test_more_logprobs_than_tokens_are_an_error() -> None:
    with pytest.raises(SamplerError, match="1 token ids but 2"):
        ask(Server(completion(token_ids=[5])))


class OurPrompt:
    """A renderer whose prompts are known."""

    def __init__(self, *ids: int) -> None:
        self.ids = ids

    def render(self, messages: Any, *, max_tokens: int | None = None) -> Any:
        return self

    def decode(self, ids: Any) -> str:
        return "".join({5: "h", 6: "i"}[i] for i in ids)


@pytest.mark.parametrize(("ours", "exact"), [((1, 2, 3), True), ((1, 2, 9, 3), False)])
def test_a_prompt_that_is_not_ours_is_not_exact(ours: tuple[int, ...], exact: bool, caplog: Any) -> None:
    sampled = ask(Server(completion()), renderer=OurPrompt(*ours))
    assert isinstance(sampled, Sampled) and sampled.exact == exact
    assert ("different from token 2 on ([3] against [9, 3])" in caplog.text) != exact


@pytest.mark.parametrize(
    ("placeholder", "ids", "text"), [(9, (5, 6), "hi"), (6, (5,), "h"), (5, (), "")], ids=["none", "last", "first"]
)
def test_a_placeholder_ends_an_answer_by_its_id(placeholder: int, ids: tuple[int, ...], text: str) -> None:
    """Whatever the server's text makes of it: vLLM leaves special tokens out."""
    sampled = ask(Server(completion("hi")), placeholders=(placeholder,), renderer=OurPrompt(1, 2, 3))
    assert isinstance(sampled, Sampled)
    assert (sampled.token_ids, sampled.text, len(sampled.logprobs or ())) == (ids, text, len(ids))
    assert (sampled.stop, sampled.exact) == ("eos" if placeholder == 9 else "special_token", True)
    assert sampled.nothing_said == (not ids)


def test_a_placeholder_is_seen_by_its_id_without_a_renderer() -> None:
    sampled = ask(Server(completion()), placeholders=(6,))
    assert isinstance(sampled, Sampled) and (sampled.stop, sampled.token_ids) == ("special_token", (5,))


def test_the_name_of_a_placeholder_is_text_where_its_id_was_not_sampled() -> None:
    typed = "type <|image_pad|>"
    sampled = ask(Server(completion(typed)), placeholders=(9,))
    assert isinstance(sampled, Sampled) and (sampled.stop, sampled.text) == ("eos", typed)
    unknown = ask(Server(completion(typed, token_ids=None)), placeholders=(9,), features=EndpointFeatures())
    assert isinstance(unknown, Sampled) and (unknown.stop, unknown.text) == ("special_token", "type ")


def test_an_unknown_model_is_refused_with_a_suggestion() -> None:
    sampler = OpenAISampler("http://server/v1", "phone-7B", transport=httpx.ASGITransport(Server(completion())))
    with pytest.raises(ConfigError, match='did you mean "phone-7b"'):
        anyio.run(sampler.check_model)


def test_a_server_that_is_not_there_is_a_prerequisite() -> None:
    transport, _ = _failing(httpx.ConnectError)
    with pytest.raises(PrerequisiteError, match="no endpoint answers"):
        anyio.run(Server(completion()).sampler(transport=transport).check_model)


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no URL"):
        OpenAISampler("localhost:8000", "m")


@pytest.mark.parametrize(
    ("features", "check"),
    [
        (FULL, lambda c: c.token_ids and c.logprobs),
        (EndpointFeatures(logprobs=True), lambda c: not c.token_ids and not c.logprobs),
    ],
)
def test_capabilities_follow_the_features(features: EndpointFeatures, check: Callable[[Any], bool]) -> None:
    assert check(Server(completion()).sampler(features=features).capabilities)
    assert not Server(completion()).sampler(encoding="jpeg").capabilities.images


# --- what a server must not decide ------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=0.5, top_p=0.9)])
def test_settings_that_a_model_may_bring_along_are_always_sent_as_neutral(params: SamplingParams) -> None:
    server = Server(completion())
    ask(server, SampleRequest(messages("go"), params, seed=0))
    neutral = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    assert {name: server.requests[0][name] for name in neutral} == neutral


def test_what_is_asked_for_is_sent_even_where_the_neutral_value_is_refused() -> None:
    features = EndpointFeatures(left_out=("top_k", "min_p"), top_k_off=-1)
    server = Server(completion())
    ask(server, SampleRequest(messages("go"), SamplingParams(top_k=20), seed=0), features=features)
    ask(server, SampleRequest(messages("go"), SamplingParams(), seed=0), features=features)
    ask(server, features=EndpointFeatures(top_k_off=-1))
    assert [request.get("top_k") for request in server.requests] == [20, None, -1]
    assert "min_p" not in server.requests[0]


class Sized(OurPrompt):
    """A renderer whose model sees all pictures at one size."""

    def __init__(self, *ids: int, size: tuple[int, int]) -> None:
        super().__init__(*ids)
        self.special = type("Special", (), {"suppressed": ()})
        self.size = size

    def shown(self, screenshot: Screenshot) -> Screenshot:
        return Screenshot(screenshot.image.resize(self.size))


@pytest.mark.parametrize("ours", [True, False])
def test_pictures_go_out_at_the_size_that_the_model_sees_where_it_is_the_model_that_we_know(ours: bool) -> None:
    import base64

    server, shot = Server(completion()), screen(1)
    features = FULL.model_copy(update={"ours": ours})
    request = SampleRequest(messages("go", shot), SamplingParams(), seed=0)
    sampled = ask(server, request, features=features, renderer=Sized(1, 2, 3, size=(32, 64)))
    data = server.requests[0]["messages"][1]["content"][0]["image_url"]["url"].split(",", 1)[1]
    sent = Screenshot.decode(base64.b64decode(data))
    assert (sent.width, sent.height) == ((32, 64) if ours else (shot.width, shot.height))
    assert isinstance(sampled, Sampled) and [i.digest for i in sampled.images] == [shot.digest], (
        "the record has the screen"
    )


# --- replies of brokers and parsers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [503, 429, "529"])
def test_b22_an_error_in_the_body_of_a_success_is_asked_again_where_it_is_for_the_moment(code: Any) -> None:
    server = Server((200, {}, {"error": {"message": "no capacity", "code": code}}), completion())
    assert isinstance(ask(server), Sampled)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"error": {"message": "no such model", "code": 404}}, "answered 404: .*no such model"),
        ({"error": "out of credit"}, "answered 500: .*out of credit"),
        ({"choices": []}, "no chat completion"),
    ],
)
def test_b22_an_error_in_the_body_of_a_success_is_named(body: Any, says: str) -> None:
    server = Server((200, {}, body))
    with pytest.raises(SamplerError, match=says):
        ask(server)
    assert len(server.requests) == 1


def test_b22_an_answer_in_parts_is_read() -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "refusal", "refusal": "no"}, {"type": "text", "text": "two"}]
    sampled = ask(Server(completion(message={"role": "assistant", "content": parts})))
    assert isinstance(sampled, Sampled) and sampled.text == "one two"


CALL = {"type": "function", "function": {"name": "mobile_use", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"content": None, "reasoning_content": "I click"}, "reasoning_content; start it without .*--reasoning-parser"),
        ({"content": "", "tool_calls": [CALL]}, "tool_calls; start it without .*--tool-call-parser"),
    ],
)
def test_b23_an_answer_that_a_parser_took_out_of_the_text_is_said_once(message: Any, says: str, caplog: Any) -> None:
    import re

    server = Server(completion(message={"role": "assistant", **message}))
    sampler = server.sampler()
    for _ in range(2):
        anyio.run(sampler.sample, SampleRequest(messages("go"), SamplingParams(), seed=3))
    assert len(re.findall(says, caplog.text)) == 1


def test_b23_an_answer_that_a_parser_took_is_read_from_its_ids_where_the_tokenizer_is_here(caplog: Any) -> None:
    class Decoding(OurPrompt):
        def decode(self, ids: Any) -> str:
            return f"text of {ids}"

    server = Server(completion(message={"role": "assistant", "content": None, "tool_calls": [CALL]}))
    sampled = ask(server, renderer=Decoding(1, 2, 3))
    assert isinstance(sampled, Sampled) and sampled.text == "text of (5, 6)"
    assert caplog.text == ""


def test_b23_text_beside_reasoning_is_the_answer(caplog: Any) -> None:
    sampled = ask(Server(completion(message={"role": "assistant", "content": "hi", "reasoning_content": "hm"})))
    assert isinstance(sampled, Sampled) and sampled.text == "hi"
    assert caplog.text == ""


def test_b21_a_list_of_models_is_asked_for_again() -> None:
    statuses = [529, 503, 200]

    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(statuses.pop(0), json={"data": [{"id": "m"}, {"id": "a", "parent": "m"}]})

    sampler = OpenAISampler("http://server/v1", "m", transport=httpx.MockTransport(handle))
    assert anyio.run(sampler.models) == [("m", None), ("a", "m")]
