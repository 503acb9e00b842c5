"""Numbers in the paths of the local servers, however long."""

from __future__ import annotations

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.local.kubernetes import FakeKubernetes
from cuarl.local.mini_agent import FakeMiniAgent
from cuarl.local.threads import served

KEY = "token-of-the-test"
LONG = "1" * 4400
"""More digits than Python makes a number of."""


@pytest.mark.parametrize(
    ("make", "path", "status"),
    [
        (lambda: FakeMiniAgent(key=KEY), "/runs/none/steps/0", 404),
        (lambda: FakeMiniAgent(key=KEY), f"/runs/none/steps/{LONG}", 404),
        (lambda: FakeKubernetes(KEY), f"/api/v1/namespaces/default/pods/none:{LONG}/proxy/act", 404),
    ],
    ids=["a step of no run", "a long number of a step", "a long port"],
)
def test_a_path_with_a_number_that_is_none_is_refused_in_words(make, path, status):
    with served(make().app()) as url:
        reply = httpx.get(url + path, headers={"Authorization": f"Bearer {KEY}"})
    assert (reply.status_code, isinstance(reply.json()["message"], str)) == (status, True)


@pytest.mark.parametrize(
    ("index", "status"), [("0", 404), ("-1", 404), ("x", 400), (LONG, 400)], ids=["0", "-1", "x", "long"]
)
def test_a_step_that_a_run_does_not_have_is_refused_in_words(index, status):
    order = {
        "task": "t", "agent": "a", "maxSteps": 1, "maxRunTimeSec": 1, "standardActionSpace": "mobile",
        "model": {"baseUrl": "http://127.0.0.1:9/v1", "name": "n", "provider": "openai"},
        "env": {"type": "genv", "gymBaseUrl": "http://127.0.0.1:9", "gymId": "g", "executionId": "e"},
    }  # fmt: skip
    headers = {"Authorization": f"Bearer {KEY}"}
    with served(FakeMiniAgent(key=KEY).app()) as url:
        name = httpx.post(f"{url}/runs", json=order, headers=headers).json()["runId"]
        assert httpx.get(f"{url}/runs/{name}/steps", headers=headers).json() == {"steps": []}
        assert httpx.get(f"{url}/runs/{name}/steps/{index}", headers=headers).status_code == status
