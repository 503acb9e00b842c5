"""Every page that a link leads to is there, says what the store holds, and lets nothing of it do anything."""

import re
from html import unescape
from io import BytesIO

import pytest
from PIL import Image

from cuarl.monitor.web.views import runs as views
from cuarl.store import Store
from cuarl.store.costs import Prices
from cuarl.workflow import people
from tests.unit.monitor.web.conftest import asking, fill
from tests.unit.monitor.web.made import PICTURE, episode
from tests.unit.store.samples import run, save

pytestmark = pytest.mark.anyio
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x00\x1b[31m\u202e\ud800{{ 7*7 }}"
LINK = re.compile(r'(?:href|src|action|data-load|data-events)="([^"]*)"')


async def crawled(client, start):
    """Every page and file that can be reached by links, by address."""
    seen, todo = {}, [start]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        if not path or path.endswith("/events"):
            continue
        answer = await client.get(path)
        assert len(seen) < 900, "links lead on for ever"
        seen[path] = answer
        if "text/html" in answer.headers["content-type"]:
            todo += [unescape(link).partition("#")[0] for link in LINK.findall(answer.text)]
    return seen


async def test_all_that_links_lead_to_is_there_and_hostile_texts_run_nowhere(url, tmp_path):
    """Below a prefix, on either database, with a hostile text in every place that has one."""
    with Store.open(url, f"{tmp_path}/blobs", runs_dir=tmp_path) as store:
        fill(store, EVIL)
        async with asking(store, prefix="deep/down") as client:
            found = await crawled(client, "/deep/down/")
    assert [path for path, answer in found.items() if answer.status_code != 200] == []
    assert {path for path in found if not path.startswith("/deep/down/")} == set()
    kinds = {re.sub(r"\?.*", "", path).split("/")[3] for path in found}
    assert kinds == {"", "runs", "episodes", "evaluations", "compare", "files", "screens"}
    assert sum("/prompt" in path for path in found) > 3 and len(found) > 100
    assert all(a.headers["x-content-type-options"] == "nosniff" for a in found.values())
    assert all("default-src 'none'; script-src 'self'" in a.headers["content-security-policy"] for a in found.values())
    pages = {path: a.text for path, a in found.items() if "text/html" in a.headers["content-type"]}
    assert sum("&lt;script&gt;alert(1)" in text for text in pages.values()) > 30
    for path, text in pages.items():
        scripts = re.findall(r"<script[^>]*>", text)
        assert scripts == ['<script src="/deep/down/files/monitor.js" defer>'], path
        assert "onerror=alert(2)>" not in text and "<img src=x" not in text, path
        assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text) == [], path
        assert text.count("&lt;script&gt;alert(1)") <= text.count("{{ 7*7 }}"), f"{path}: a template of a template"


async def test_a_run_shows_where_it_is_its_curves_and_its_timeline(store):
    fill(store)
    async with asking(store) as client:
        text = (await client.get("/runs/better")).text
        listed = (await client.get("/")).text
    assert "collecting · step 3 of 4 · 1 of 4 episodes" in text and "2 min left" in text and "56 %" in text
    titles = re.findall(r"<figcaption><b>([^<]*)", text)
    assert titles == ["Success", "Reward", "Signal", "Why episodes ended", "Failures", "Time by phase"]
    assert text.count('class="band') == 2, "both training and evaluation have intervals"
    assert re.findall(r'steps/(\d)">', text) == ["3", "2", "1"] and "baseline" in text
    assert text.count("under way") == 1 and 'step 3</a> <span class="dim">under way' in text
    assert "acting · turn 2 of 10" in text and "box-9" in text
    assert "collecting · step 3 of 4" in listed and listed.index("better") < listed.index("base<")


async def test_a_step_shows_its_groups_and_marks_those_that_teach_nothing(store):
    fill(store)
    async with asking(store) as client:
        first, third = [(await client.get(f"/runs/better/steps/{n}")).text for n in (1, 3)]
    assert first.count("all equal") == 0 and first.count('class="chip good"') == 2
    assert "#1 · acting" in third and "better.3.0.0" in third
    for attempt in range(2):
        one = store.trajectory(f"better.1.0.{attempt}")
        save(store, one.model_copy(update={"reward": 1.0}))
    async with asking(store) as client:
        assert (await client.get("/runs/better/steps/1")).text.count(">all equal<") == 1


async def test_an_episode_shows_a_turn_large_with_its_action_answer_tokens_and_checks(store):
    fill(store)
    async with asking(store) as client:
        text = (await client.get("/episodes/base.1.0.0?turn=0")).text
        swipe = (await client.get("/episodes/base.1.0.0?turn=2")).text
        beyond = (await client.get("/episodes/base.1.0.0?turn=99")).text
    assert '<circle class="ring" cx="20.5" cy="30.5"' in text and "click (20, 30)" in text
    assert text.count(f"/screens/{PICTURE.digest}.png") >= 6, "a strip of four turns and the end, and one large"
    assert '<span class="lp4" title="-2">' in text and "&lt;tool_call&gt;" in text
    assert "box-0" in text and "checked in 250 ms" in text and "ready after 500 ms" in text
    assert "overruled" in text and "ann" in text and "Recorded verdict: <b>success</b>" in text
    assert '<polyline class="line" points="1.5,2.5 60.5,90.5"/>' in swipe
    assert "The end" in beyond


async def test_a_running_episode_is_shown_as_far_as_it_has_come(store):
    fill(store)
    async with asking(store) as client:
        text = (await client.get("/episodes/better.3.0.0")).text
    assert "turn 2 of 10" in text and "The screen now" in text and text.count("data-turn=") == 3
    assert "override" not in text, "there is no verdict to overrule yet"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("run=base&purpose=train", 8),
        ("run=base&purpose=train&result=success", 2),
        ("run=base&purpose=train&result=failure", 5),
        ("run=base&result=overruled", 1),
        ("run=base&result=unjudged", 1),
        ("run=base&failure=env", 1),
        ("run=base&failure=agent", 0),
        ("run=base&stop=failed", 1),
        ("run=base&task=wifi_on&step=2", 3),
        ("run=base&suite=settings", 12),
        ("run=base&suite=other", 0),
        ("run=base&difficulty=hard&purpose=train", 4),
        ("run=base&min_reward=0.5&purpose=train", 3),
        ("run=base&max_reward=0.5&purpose=train", 4),
        ("device=box-1", 8),
        ("policy=tiny&seed=7", 24),
    ],
)
async def test_episodes_are_chosen_by_what_is_asked(url, tmp_path, query, expected):
    with Store.open(url, f"{tmp_path}/blobs", runs_dir=tmp_path) as store:
        fill(store)
        async with asking(store) as client:
            text = (await client.get(f"/episodes?{query}")).text
    assert len(re.findall(r'<tr>\s*<td><a href="/episodes/', text)) == expected


async def test_the_order_is_as_asked_and_pages_follow_each_other(store):
    fill(store)
    for i in range(60):
        one = store.trajectory("base.1.0.0")
        save(store, one.model_copy(update={"episode_id": f"more-{i:02d}", "reward": i / 10, "group_id": "m"}))
    async with asking(store) as client:
        first, second = [
            re.findall(
                r'href="/episodes/([\w.-]+)"', (await client.get(f"/episodes?run=base&sort=-reward&page={n}")).text
            )
            for n in (0, 1)
        ]
    assert first[:3] == ["more-59", "more-58", "more-57"] and len(first) == 50 and len(second) == 22
    assert set(first) & set(second) == set()


@pytest.mark.parametrize(
    "path",
    ["/runs/nobody", "/episodes/nobody", "/evaluations/nobody", "/compare?a=evaluation:no", "/runs/base/steps/x"],
)
async def test_what_is_not_there_is_said_on_a_page(store, path):
    fill(store)
    async with asking(store) as client:
        answer = await client.get(path)
    assert answer.status_code in (400, 404) and "<h1>Not here</h1>" in answer.text


@pytest.mark.parametrize(
    "query", ["sort=x", "result=good", "step=-1", "min_reward=nan", "page=1e3", "step=" + "9" * 99]
)
async def test_a_wrong_question_is_refused_and_not_answered_by_another(store, query):
    async with asking(store) as client:
        assert (await client.get(f"/episodes?{query}")).status_code == 400


async def test_an_evaluation_stands_beside_its_baselines_and_the_others_of_its_run(store):
    fill(store)
    async with asking(store) as client:
        text = (await client.get("/evaluations/better.eval.2")).text
        worse = (await client.get("/evaluations/base.eval.2")).text
    assert "100 %" in text and "+100.0 points" in text and "random" in text and "step 0" in text
    assert re.findall(r"<tr><td>(\w+)</td><td class=\"num\">(\d) of 1", worse) == [("dark_mode", "0"), ("wifi_on", "1")]


async def test_two_evaluations_are_compared_on_the_instances_that_both_met(store):
    fill(store)
    async with asking(store) as client:
        sides = "/compare?a=evaluation:base.eval.2&b=evaluation:better.eval.2"
        text = (await client.get(sides)).text
        pair = (await client.get(f"{sides}&x=base.2.11.0&y=better.2.11.0&turn=1")).text
    assert "B minus A" in text and "+50.0 points" in text
    assert re.findall(r'class="differs"><td>(\w+)', text) == ["dark_mode"]
    assert pair.count('<div class="large">') == 2 and "turn 2 of 4" in pair


async def test_a_persons_verdict_counts_in_evaluations_from_then_on(store):
    fill(store)
    async with asking(store) as client:
        patch = {"success": True, "reason": "it was right"}
        await client.patch("/api/rollouts/base.2.11.0/validation-override", json=patch)
        text = (await client.get("/evaluations/base.eval.2")).text
        entries = (await client.get("/api/trainings/base/timeline")).json()["timeline"]
        lists = [(await client.get(path)).text for path in ("/", "/evaluations", "/runs/base", "/runs/base/steps/2")]
    assert "100 %" in text and "1 verdicts overruled" in text
    assert [e["success_rate"] for e in entries if e["kind"] != "step"] == [0.5, 1.0]
    assert all("100 %" in page for page in lists), "wherever its rate is told"
    [kept] = [e for e in store.evaluations(run="base") if e.step == 2]
    assert kept.metrics["success_rate"] == 0.5, "the record stays"
    [shown] = [e for e in people.evaluations(store, "base") if e.step == 2]
    assert shown.metrics["success_rate"] == 1.0 and shown.metrics["ci_low"] < 1 and shown.metrics["n"] == 2
    assert shown.metrics["false_completion_rate"] == 0


async def test_a_run_links_to_its_trackers_where_they_have_an_address(store):
    fill(store)
    told = {"wandb": "https://wandb.example/r/1", "tensorboard": "/runs/base/tensorboard", "odd": "javascript:alert(1)"}
    for name, where in {**told, "mlflow": ""}.items():
        store.log_event("base", "tracker", {"name": name, "id": "x", "url": where})
    store.drain()
    async with asking(store) as client:
        text = (await client.get("/runs/base")).text
        other = (await client.get("/runs/better")).text
    assert '<a href="https://wandb.example/r/1" rel="noreferrer">wandb</a>' in text
    assert 'tensorboard <span class="dim">(/runs/base/tensorboard)</span>' in text and "mlflow" in text
    assert 'href="javascript:' not in text and "Also in" not in other


async def test_an_episode_as_a_moving_picture(store):
    fill(store)
    async with asking(store) as client:
        answer = await client.get("/episodes/base.1.0.0/film.gif")
        strange = await client.get("/episodes/nobody/film.gif")
    with Image.open(BytesIO(answer.content)) as film:
        assert (answer.headers["content-type"], film.n_frames) == ("image/gif", 5)
    assert strange.status_code == 404


async def test_a_run_says_what_it_cost(store):
    fill(store)
    async with asking(store, prices=Prices(machine_hour=600.0)) as client:
        text = (await client.get("/runs/base")).text
    rows = re.findall(r"<tr><td>(train|eval)</td><td>(\w+)</td><td class=\"num\">(\d+)", text)
    assert rows == [("eval", "gbox", "4"), ("train", "gbox", "8")]
    assert "6.0 s on its machine · 1 in all" in text


async def test_the_ledger_of_a_large_run_is_added_up_when_it_is_asked_for(store, monkeypatch):
    fill(store)
    monkeypatch.setattr(views, "MANY", 3)
    async with asking(store) as client:
        text = (await client.get("/runs/base")).text
        ledger = (await client.get("/runs/base/costs")).text
    assert "<td>gbox</td>" not in text and 'data-load="/runs/base/costs" data-part="ledger"' in text
    assert '<div id="ledger">' in ledger and ledger.count("<td>gbox</td>") == 2


@pytest.mark.parametrize(("credit", "first"), [("episode", "+1.00"), ("screen", "+0.00")])
async def test_tokens_are_underlined_by_their_turns_advantage(store, credit, first):
    """Attempts that see the same screens all the time differ by their reward alone, which falls due at the end."""
    fill(store)
    options = {"type": "grpo", "credit": credit, "credit_lambda": 0.0, "discount": 1.0}
    record = run("tuned", name="tuned", model="tiny").model_copy(update={"config": {"algorithm": options}})
    store.start_run(record)
    for attempt in range(2):
        store.enqueue(episode("tuned", 1, 0, attempt, "wifi_on"))
    store.drain()
    async with asking(store) as client:
        good = (await client.get("/episodes/tuned.1.0.0?turn=0")).text
        bad = (await client.get("/episodes/tuned.1.0.1?turn=3")).text
        unknown = (await client.get("/episodes/base.1.0.0?turn=0")).text
    assert f"{first} at this turn" in good and ('class="lp0 up2"' in good) == (credit == "episode")
    assert re.search(r'class="lp\d down\d"', bad) and "at this turn" not in unknown
