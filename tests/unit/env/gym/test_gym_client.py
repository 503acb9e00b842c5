"""What a gym's answers mean: verdicts above all, where a zero is a zero and nothing is nothing."""

from __future__ import annotations

import anyio
import httpx
import pytest

from cuarl.env.gym.client import Gym, read_verdict
from cuarl.errors import EnvError, RewardError

VALIDATORS = [
    {"id": "a", "pass": True, "score": 1.0, "weight": 3},
    {"id": "b", "pass": False, "score": 0.0, "weight": 1},
]


@pytest.mark.parametrize(
    ("body", "score", "success"),
    [
        ({"success": True, "result": {"score": 0, "success": False}}, 0.0, False),
        ({"success": True, "result": {"score": 0.0, "success": True}}, 0.0, False),
        ({"success": True, "result": {"score": 0.5, "success": False, "validators": VALIDATORS}}, 0.5, False),
        ({"success": True, "result": {"validators": VALIDATORS}}, 0.75, False),
        ({"success": True, "result": {"validators": [{"id": "a", "pass": False}, {"id": "b", "pass": True}]}}, 0.5,
            False),
        ({"success": True, "result": {"validators": [], "success": True}}, 1.0, True),
        ({"success": True, "reward": 0, "score": 1}, 0.0, False),
        ({"reward": 1}, 1.0, True),
        ({"score": 0.4}, 0.4, False),
        ({"success": True}, 1.0, True),
        ({"success": False}, 0.0, False),
        ({"success": True, "result": {"score": 1.0}}, 1.0, True),
    ],
)  # fmt: skip
def test_the_first_number_that_is_there_counts(body, score, success):
    verdict = read_verdict(body)
    assert (verdict.score, verdict.success) == (score, success)


def test_validators_are_kept_as_checks():
    checks = read_verdict({"result": {"validators": VALIDATORS}}).checks
    assert [(c.path, c.passed, c.actual) for c in checks] == [("a", True, 1.0), ("b", False, 0.0)]


@pytest.mark.parametrize(
    "body",
    [{}, {"result": {}}, {"result": None}, {"success": False, "error": "device lost"}, {"detail": "no execution"},
     {"result": {"score": "1"}}, {"result": {"score": 55}}, {"result": {"score": float("nan")}}],
)  # fmt: skip
def test_no_verdict_is_an_error_and_never_a_zero(body):
    with pytest.raises(RewardError):
        read_verdict(body)


@pytest.mark.parametrize(
    ("reply", "serial", "box"),
    [
        ({"device": {"device_serial": "emulator-5554"}}, "emulator-5554", ""),
        ({"gbox_id": "b1"}, "", "b1"),
        ({"boxId": "b2"}, "", "b2"),
        ({"environment": {"id": "b3"}}, "", "b3"),
        ({"box": {"container_id": "b4"}}, "", "b4"),
        ({"device": {"box_id": "b5"}}, "", "b5"),
        ({"environment_id": "b6", "device": {}}, "", "b6"),
        ({}, "", ""),
    ],
)
def test_the_device_is_found_under_any_name(reply, serial, box):
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(200, json={"execution_id": "e1", **reply})

    gym = Gym("http://gym", "a gym", "secret-key")
    gym.service._open = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    started = anyio.run(gym.create, "task/1", 7)
    assert (started.id, started.serial, started.box) == ("e1", serial, box)
    assert asked[0].url.raw_path == b"/api/v1/a%20gym/tasks/task%2F1"
    assert asked[0].headers["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize("status", [500, 502])
def test_an_execution_is_never_started_twice(status):
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(status, json={"detail": "broken"})

    gym = Gym("http://gym", "g")
    gym.service._open = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    with pytest.raises(EnvError, match=f"answered {status}"):
        anyio.run(gym.create, "t", 1)
    assert len(asked) == 1
