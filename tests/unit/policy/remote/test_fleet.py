"""Several servers as one sampler: small servers in this process, which can be unplugged."""

import json
from collections import Counter

import anyio
import httpx
import pytest
import stamina

from cuarl.errors import PrerequisiteError, SamplerError
from cuarl.policy.remote.fleet import RETRY_S, Fleet
from cuarl.policy.remote.http import ServerLost
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.wire import EndpointFeatures
from cuarl.policy.sampler import SampleRequest, SamplingParams
from tests.unit.policy.pictures import messages
from tests.unit.policy.remote.test_openai import completion

FULL = EndpointFeatures(token_ids=True, logprobs=True, scaled_logprobs=True)


class Plugged:
    """A server with adapters, as a transport; unplugged it answers nothing, plugged in again it has forgotten them."""

    def __init__(self, name):
        self.name, self.there, self.refusal, self.groups, self.adapters = name, True, None, Counter(), []
        self.dies_while_asked = False

    def unplug(self):
        self.there, self.adapters = False, []

    def __call__(self, request):
        if not self.there:
            raise httpx.ConnectError("refused")
        if request.url.path.endswith("/models"):
            names = [{"id": "base", "parent": None}, *({"id": a, "parent": "base"} for a in self.adapters)]
            return httpx.Response(200, json={"data": names})
        body = json.loads(request.content)
        if request.url.path.endswith("lora_adapter"):
            if self.refusal:
                return httpx.Response(400, text=self.refusal)
            change = self.adapters.append if "/load_" in request.url.path else self.adapters.remove
            if "/load_" in request.url.path or body["lora_name"] in self.adapters:
                change(body["lora_name"])
                return httpx.Response(200)
            return httpx.Response(404)
        if self.dies_while_asked:
            self.unplug()
            raise httpx.ReadError("")
        if body["model"] not in ("base", *self.adapters):
            return httpx.Response(404, text="no such model")
        self.groups[body["seed"] // 100] += 1  # the tests' seeds say the group
        return httpx.Response(200, json=completion(self.name)[2])


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def _no_waiting():
    with stamina.set_testing(True, attempts=2):
        yield


@pytest.fixture
def servers():
    return [Plugged("one"), Plugged("two"), Plugged("three")]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def fleet(servers, clock):
    made = [
        OpenAISampler(f"http://{s.name}/v1", "base", features=FULL, transport=httpx.MockTransport(s)) for s in servers
    ]
    return Fleet(made, clock=clock)


def request(group, turn=0):
    return SampleRequest(messages("go"), SamplingParams(), seed=100 * group + turn, group=f"g{group}")


def answers(fleet, *requests):
    """Whose each was: the servers' names are their answers."""

    async def ask():
        return [(await fleet.sample(one)).text for one in requests]

    return anyio.run(ask)


def at(servers):
    return [dict(sorted(server.groups.items())) for server in servers]


def test_a_group_stays_on_one_server_and_groups_are_shared_out(fleet, servers):
    answers(fleet, *[request(group, turn) for turn in range(4) for group in range(6)])
    assert at(servers) == [{0: 4, 3: 4}, {1: 4, 4: 4}, {2: 4, 5: 4}]


def test_groups_of_which_nothing_was_heard_for_long_are_no_work(fleet, servers, clock):
    answers(fleet, request(0), request(1), request(2), request(3))
    clock.now = 60.0
    answers(fleet, request(1), request(2))
    clock.now = 150.0  # 0 and 3 are over, both of them the first server's
    answers(fleet, request(4), request(5))
    assert at(servers) == [{0: 1, 3: 1, 4: 1, 5: 1}, {1: 2}, {2: 2}]


@pytest.mark.parametrize("asked", [False, True], ids=["between two requests", "while it is asked"])
def test_episodes_of_a_server_that_dies_go_on_elsewhere(fleet, servers, asked, caplog):
    answers(fleet, *[request(group) for group in range(3)])
    if asked:
        servers[1].dies_while_asked = True
    else:
        servers[1].unplug()
    after = answers(fleet, *[request(group, 1) for group in range(3)])
    assert (after[0], after[2]) == ("one", "three") and after[1] in ("one", "three")
    assert answers(fleet, request(1, 2)) == [after[1]], "its new place is kept, too"
    (told,) = [record.message for record in caplog.records if record.name.startswith("cuarl")]
    assert "http://two/v1 gave no answer" in told and "2 of 3 servers go on" in told
    assert fleet.told() == {
        "sampler/0/answers": 2.0 + 2 * (after[1] == "one"),
        "sampler/0/gone": 0.0,
        "sampler/0/version_lag": 0.0,
        "sampler/1/answers": 1.0,
        "sampler/1/gone": 1.0,
        "sampler/1/version_lag": 0.0,
        "sampler/2/answers": 2.0 + 2 * (after[1] == "three"),
        "sampler/2/gone": 0.0,
        "sampler/2/version_lag": 0.0,
    }
    assert fleet.told()["sampler/0/answers"] == 0.0


def test_all_gone_is_an_error_and_the_first_that_is_back_is_used(fleet, servers):
    for server in servers:
        server.unplug()
    with pytest.raises(ServerLost, match="gave no answer"):
        answers(fleet, request(0))
    servers[2].there = True
    assert answers(fleet, request(0)) == ["three"]


def test_one_that_is_back_is_given_the_adapter_before_it_is_asked(fleet, servers, clock):
    fleet.version = 1
    anyio.run(fleet.load_adapter, "step-1", "/adapters/1")
    servers[0].unplug()
    answers(fleet, request(0))
    fleet.version = 2
    anyio.run(fleet.load_adapter, "step-2", "/adapters/2")
    assert [server.adapters for server in servers] == [[], ["step-2"], ["step-2"]]
    assert [fleet.told()[f"sampler/{n}/version_lag"] for n in range(3)] == [1.0, 0.0, 0.0]
    servers[0].there = True
    assert "one" not in answers(fleet, *[request(group) for group in range(1, 5)]), "it is left alone for a while"
    clock.now = RETRY_S
    assert "one" in answers(fleet, *[request(group) for group in range(10, 14)])
    assert servers[0].adapters == ["step-2"] and fleet.members[0].version == 2
    assert fleet.told()["sampler/0/version_lag"] == 0.0


def test_one_that_was_started_anew_unnoticed_has_no_adapter_and_gets_it_again(fleet, servers, clock):
    anyio.run(fleet.load_adapter, "step-1", "/adapters/1")
    servers[0].adapters.clear()
    assert answers(fleet, request(0)) != ["one"]
    clock.now = RETRY_S
    answers(fleet, *[request(group) for group in range(1, 4)])
    assert servers[0].adapters == ["step-1"]
    anyio.run(fleet.release_adapter)
    assert [server.adapters for server in servers] == [[], [], []]


def test_an_adapter_that_a_server_refuses_is_an_error_whatever_the_others_say(fleet, servers):
    servers[1].refusal = "LoRA rank 32 is greater than max_lora_rank 16"
    with pytest.raises(SamplerError, match="rank 32"):
        anyio.run(fleet.load_adapter, "step-1", "/adapters/1")


def test_what_is_given_is_what_all_give(servers):
    poor = FULL.model_copy(update={"scaled_logprobs": False, "wrong_draws": "it samples something else"})
    made = [
        OpenAISampler(f"http://{s.name}/v1", "base", features=f, transport=httpx.MockTransport(s))
        for s, f in zip(servers, (FULL, poor, FULL), strict=True)
    ]
    fleet = Fleet(made)
    assert (fleet.features.logprobs, fleet.features.scaled_logprobs) == (True, False)
    assert fleet.features.wrong_draws == "it samples something else"
    assert not fleet.capabilities.logprobs and fleet.capabilities.token_ids


def test_at_the_beginning_all_must_be_there(fleet, servers):
    assert len(anyio.run(fleet.models)) == 3
    servers[2].unplug()
    with pytest.raises(PrerequisiteError, match="no endpoint answers"):
        anyio.run(fleet.models)
