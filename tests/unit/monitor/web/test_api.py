"""The read API that the seeds' monitor has, and overruling a verdict by it."""

import json
import re

import pytest

from cuarl.monitor.web import api, ingest, openapi
from cuarl.store.pages import Pages
from tests.unit.monitor.web.conftest import asking, fill
from tests.unit.monitor.web.made import PICTURE

pytestmark = pytest.mark.anyio
OVERRIDE = "/api/rollouts/base.1.0.0/validation-override"


@pytest.fixture
def filled(store):
    fill(store)
    return store


async def get(store, path, **options):
    async with asking(store, **options) as client:
        return await client.get(path)


async def test_trainings_and_their_timelines(filled):
    listed = (await get(filled, "/api/trainings")).json()["trainings"]
    assert [(t["id"], t["run_name"], t["status"]) for t in listed] == [
        ("better", "better", "running"),
        ("base", "base", "completed"),
    ]
    one = (await get(filled, "/api/trainings/better")).json()
    assert (one["current_phase"], one["progress_percent"], one["estimated_remaining_time"]) == (
        "collecting",
        56.0,
        90.0,
    )
    assert one["config_json"] == {"note": "x"} and one["total_steps"] == 4
    found = (await get(filled, "/api/trainings/better/timeline")).json()["timeline"]
    assert [(e["kind"], e["step"]) for e in found] == [("baseline", 0), ("step", 1), ("eval", 2), ("step", 2)]
    assert found[1]["metrics"]["reward/mean"] == 0.2


async def test_an_entry_of_a_timeline_has_its_rollouts(filled):
    step = (await get(filled, "/api/timeline/step/base:1")).json()
    measured = (await get(filled, "/api/timeline/eval/base.eval.2")).json()
    assert [r["rollout_id"] for r in step["rollouts"]] == [f"base.1.{g}.{a}" for g in (0, 1) for a in (0, 1)]
    assert [r["task_success"] for r in step["rollouts"]] == [False, False, False, True], "a person overruled the first"
    assert len(measured["rollouts"]) == 2 and measured["success_rate"] == 0.5


async def test_a_rollout_its_turns_and_what_the_model_was_given(filled):
    one = (await get(filled, "/api/rollouts/base.1.0.0")).json()
    assert [t["model_response"] for t in one["turns"]] == ["<tool_call>", "<tool_call>", None, "<tool_call>"]
    assert (one["device"], one["env_creation_time"], one["validation_time"]) == ("box-0", 0.5, 0.25)
    assert [(v["success"], v["actor"]) for v in one["validation_overrides"]] == [(False, "ann")]
    turn = (await get(filled, "/api/rollouts/base.1.0.0/turns/0")).json()
    assert (turn["action"]["kind"], turn["sampled"]["logprobs"], turn["sampled"]["prompt_ids"]) == (
        "click",
        [-0.1, -2.0],
        [],
    )
    given = (await get(filled, "/api/rollouts/base.1.0.0/model-input/0")).json()
    assert given["prompt_ids"] == [1, 2, 3] and given["images"][0]["digest"] == PICTURE.digest
    going = (await get(filled, "/api/rollouts/better.3.0.0")).json()
    assert (going["status"], going["current_phase"], going["current_turn"], going["max_turns"]) == (
        "running",
        "acting",
        2,
        10,
    )
    for path in (f"/api/rollouts/base.1.0.0/screenshot/{PICTURE.digest}", f"/api/screenshots/{PICTURE.digest}.png"):
        picture = await get(filled, path)
        assert picture.content == PICTURE.png() and "immutable" in picture.headers["cache-control"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/trainings/nobody", 404),
        ("/api/trainings/nobody/timeline", 404),
        ("/api/trainings?page=x", 400),
        ("/api/timeline/other/x", 400),
        ("/api/timeline/step/base", 400),
        ("/api/timeline/step/nobody:1", 404),
        ("/api/timeline/eval/nobody", 404),
        ("/api/rollouts/nobody", 404),
        ("/api/rollouts/base.1.0.0/turns/x", 400),
        ("/api/rollouts/base.1.0.0/turns/99", 404),
        ("/api/rollouts/base.1.0.0/model-input/2", 404),
        ("/api/screenshots/..%2F..%2Fetc%2Fpasswd", 404),
        ("/api/screenshots/" + "0" * 64, 404),
        ("/screens/x.png", 404),
        ("/files/..%2Fapp.py", 404),
        ("/nothing", 404),
    ],
)
async def test_what_is_not_there_or_no_name_is_said(filled, path, status):
    answer = await get(filled, path)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


async def test_a_verdict_is_overruled_with_a_history_and_taken_back(filled):
    async with asking(filled) as client:
        said = await client.patch(OVERRIDE, json={"success": True, "reason": "look again", "actor": "bob"})
        assert said.status_code == 200 and said.json()["success"] is True
        await client.patch(OVERRIDE, json={"success": None})
        one = (await client.get("/api/rollouts/base.1.0.0")).json()
    assert [v["success"] for v in one["validation_overrides"]] == [False, True, None]
    assert one["task_success"] is True and filled.overruled() == {}


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"success": "yes", "reason": 1}, 400), ([], 400), ({"success": True, "more": 1}, 400),
     ({"success": True, "reason": "x" * 5000}, 400)],
)  # fmt: skip
async def test_a_body_that_is_none_overrules_nothing(filled, body, status):
    async with asking(filled) as client:
        answer = await client.patch(OVERRIDE, json=body)
    assert answer.status_code == status and len(filled.human_verdicts()) == 1


async def test_who_may_not_overrules_nothing(filled):
    good = {"success": True}
    async with asking(filled) as client:
        elsewhere = await client.patch(OVERRIDE, json=good, headers={"origin": "http://evil.example"})
        form = await client.patch(OVERRIDE, content='{"success": true}', headers={"content-type": "text/plain"})
        nobody = await client.patch(OVERRIDE.replace("base.1", "base.9"), json=good)
        under_way = await client.patch(OVERRIDE.replace("base.1", "better.3"), json=good)
    async with asking(filled, read_only=True) as client:
        shown = await client.get("/episodes/base.1.0.0")
        only = await client.patch(OVERRIDE, json=good)
    answers = [a.status_code for a in (elsewhere, form, nobody, under_way, only)]
    assert answers == [403, 415, 404, 404, 403] and 'id="override"' not in shown.text
    assert len(filled.human_verdicts()) == 1


async def test_only_names_of_this_machine_are_answered_to(filled):
    async with asking(filled, base="http://evil.example") as client:
        assert (await client.get("/")).status_code == 403
    async with asking(filled, base="http://gpu.example", hosts=("gpu.example",)) as client:
        assert (await client.get("/")).status_code == 200


async def test_with_a_token_a_browser_is_led_to_a_form_once_and_programs_send_it(filled):
    async with asking(filled, token="s3cret-token", prefix="/m") as client:
        browser = {"accept": "text/html"}
        led = await client.get("/m/runs/base?before=2", headers=browser)
        assert led.status_code == 303 and led.headers["location"] == "/m/login?next=%2Fm%2Fruns%2Fbase%3Fbefore%3D2"
        assert (await client.get("/m/runs/base")).status_code == 401
        assert (await client.get(led.headers["location"], headers=browser)).status_code == 200
        assert (await client.get("/m/files/monitor.css")).status_code == 200
        wrong = await client.post("/m/login", data={"token": "guess"})
        assert wrong.status_code == 401 and not client.cookies
        right = await client.post(led.headers["location"], data={"token": "s3cret-token"})
        assert right.headers["location"] == "/m/runs/base?before=2"
        assert "httponly" in right.headers["set-cookie"].lower() and "s3cret" not in right.headers["set-cookie"]
        assert (await client.get("/m/runs/base", headers=browser)).status_code == 200
        client.cookies.clear()
        bearer = {"authorization": "Bearer s3cret-token"}
        assert (await client.get("/m/api/trainings", headers=bearer)).status_code == 200


@pytest.mark.parametrize(
    "there", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "/other"]
)
async def test_the_form_leads_nowhere_else(filled, there):
    async with asking(filled, token="s3cret-token", prefix="/m") as client:
        answer = await client.post("/m/login", params={"next": there}, data={"token": "s3cret-token"})
    assert answer.headers["location"] == "/m/"


def test_what_has_moved_is_known_by_run(filled):
    before = Pages(filled.engine).stamp()
    assert set(before) == {"base", "better"}
    filled.finish_run("better", "completed")
    after = Pages(filled.engine).stamp()
    assert after["better"] != before["better"]


async def test_the_document_has_every_path_of_both_apis_below_the_prefix(filled):
    async with asking(filled, prefix="/monitor") as client:
        told = (await client.get("/monitor/api/openapi.json")).json()
    kept = {route.path: route.methods - {"HEAD"} for route in [*api.routes(None), *openapi.routes(None)]}
    paths = {re.sub(r":\w+}", "}", path): {m.lower() for m in methods} for path, methods in kept.items()}
    assert {path: set(methods) for path, methods in told["paths"].items()} == {**paths, ingest.PATH: {"post"}}
    assert told["servers"] == [{"url": "/monitor"}]
    names = re.findall('"#/components/schemas/(.*?)"', json.dumps(told))
    assert set(names) <= set(told["components"]["schemas"]), "nothing is referred to that is not there"
