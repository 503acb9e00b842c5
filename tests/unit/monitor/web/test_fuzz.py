"""Requests that no browser makes: whatever stands in a path or a query, the answer is one of ours and never a
failure."""

import json
import random
from urllib.parse import quote

import pytest

from cuarl.monitor.web.app import PAGES
from tests.unit.monitor.web.conftest import asking, fill

pytestmark = pytest.mark.anyio
WORDS = (
    "base", "better", "base.1.0.0", "better.3.0.0", "base.eval.2", "nobody", "a/b", "\x00", "\ud800", "x" * 3000, "%",
    "..", "1", "-1",
    "9" * 50, "base:1", "base:x", ":", "é", "'", '"; drop table runs; --', "evaluation:base.eval.2", "run:base",
    "evaluation:", "nan",
)  # fmt: skip
API = (
    "/api/trainings", "/api/trainings/{}", "/api/trainings/{}/timeline", "/api/timeline/{}/{}", "/api/rollouts/{}",
    "/api/rollouts/{}/turns/{}", "/api/rollouts/{}/model-input/{}", "/api/rollouts/{}/screenshot/{}",
    "/api/rollouts/{}/validation-override", "/screens/{}", "/files/{}", "/login",
)  # fmt: skip
KEYS = (
    "run", "task", "suite", "result", "stop", "failure", "step", "seed", "sort", "page", "min_reward", "max_reward",
    "a", "b", "x",
    "y", "turn", "only", "q", "status", "before", "next", "evaluation", "group", "purpose",
)  # fmt: skip
JSON = {"content-type": "application/json"}
BODIES = (None, {}, {"success": True}, {"success": True, "reason": "\ud800\x00"}, [1], "x")


@pytest.mark.parametrize("seed", range(3))
async def test_no_request_makes_the_server_fail(store, seed):
    fill(store)
    rng = random.Random(seed)
    paths = [*PAGES, *API]
    found = {}
    async with asking(store) as client:
        for _ in range(150):
            pieces = rng.choice(paths).split("{")
            words = (quote(rng.choice(WORDS), safe="", errors="surrogatepass") for _ in pieces[1:])
            path = pieces[0] + "".join(w + piece.partition("}")[2] for w, piece in zip(words, pieces[1:], strict=True))
            keys = rng.sample(KEYS, rng.randrange(4))
            query = "&".join(f"{k}={quote(rng.choice(WORDS), safe='', errors='surrogatepass')}" for k in keys)
            method = rng.choice(["GET"] * 9 + ["PATCH", "POST"])
            body = {} if method == "GET" else {"content": json.dumps(rng.choice(BODIES)), "headers": JSON}
            answer = await client.request(method, f"{path}?{query}", **body)
            found[answer.status_code] = f"{method} {path}?{query}"
    assert set(found) <= {200, 303, 400, 401, 403, 404, 405, 413, 415}, found
    assert {200, 404} <= set(found), "it asks for something that is there, too"
