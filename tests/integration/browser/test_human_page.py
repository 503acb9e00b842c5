"""A person's page, worked by a real browser: what is recorded through it is what a script would have recorded."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import anyio
import httpx
import pytest

pytest.importorskip("playwright", reason="the page is worked by a browser, which playwright drives")

import cuarl
from cuarl.agent.scripted import DemonstratingAgent, OracleAgent
from cuarl.config.load import resolve
from cuarl.env.browser.browser import find_program
from cuarl.settings import Settings
from cuarl.store import Store
from cuarl.tasks.files import load_file
from cuarl.types import Click, Finish, StopReason, TypeText
from cuarl.workflow import environments, human, players
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.imitation import Imitation
from cuarl.workflow.players import Player
from cuarl.workflow.rollouts import collect
from cuarl.workflow.task_file_recording import record_task, task_to_record, write_task
from cuarl.workflow.task_proofs import prove_live
from cuarl.workflow.verification import judged, verify
from cuarl.workflow.watcher import Silent

pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytestmark = pytest.mark.integration

TASKS = """
tasks:
  - {id: wifi, description: Turn Wi-Fi off., preset: {network.wifi.enabled: true}, max_steps: 12,
     checks: [{path: network.wifi.enabled, value: false}]}
  - {id: dark, description: Turn the dark theme on., preset: {display.dark_theme: false}, max_steps: 12,
     checks: [{path: display.dark_theme, value: true}]}
"""
FORM = """<!doctype html><title>Form</title><body style="margin:0; font:16px sans-serif">
<label style="position:absolute; left:20px; top:20px">Name <input id=name style="width:160px"></label>
<button style="position:absolute; left:20px; top:80px; width:90px; height:30px"
  onclick="out.textContent = 'saved ' + document.getElementById('name').value">Save</button>
<output id=out style="position:absolute; left:20px; top:140px"></output>"""


@pytest.fixture(scope="module")
def policy():
    return players.load_model(resolve(flags={}).config)


def experiment(folder, tasks, **fields):
    return Experiment(resolved=resolve(flags=fields), settings=Settings.load(runs_dir=folder / "runs"), tasks=tasks)


@pytest.fixture
def tasks(tmp_path):
    (tmp_path / "tasks.yaml").write_text(TASKS)
    return [found.task for found in load_file(tmp_path / "tasks.yaml")]


class Heard(Silent):
    """A watcher that passes on where the page is."""

    def __init__(self, addresses):
        self.addresses = addresses

    def event(self, kind, data):
        self.addresses.put(data["url"])


class Person:
    """Somebody with a browser, who works on the page of a collection that runs in a thread."""

    def __init__(self, page):
        self.page, self.complaints = page, []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def sees(self, words):
        self.page.wait_for_function("words => document.body.innerText.includes(words)", arg=words)

    def awaited(self, episode, turn):
        """Until a turn is asked about."""
        self.sees(f"episode {episode} of")
        self.sees(f"turn {turn + 1} of at most")
        self.page.wait_for_selector("#stage:not(.busy) #shot:not([hidden])")

    def at(self, x, y):
        """The middle of a pixel of the screenshot, on the page."""
        box = self.page.locator("#shot").bounding_box()
        width, height = self.page.evaluate("[view.turn.screen.width, view.turn.screen.height]")
        return box["x"] + (x + 0.5) / width * box["width"], box["y"] + (y + 0.5) / height * box["height"]

    def does(self, action):
        page = self.page
        match action.kind:
            case "click":
                page.mouse.click(*self.at(action.x, action.y))
            case "swipe":
                page.mouse.move(*self.at(action.x, action.y))
                page.mouse.down()
                page.mouse.move(*self.at(action.x2, action.y2), steps=3)
                page.mouse.up()
            case "type":
                page.locator("#stage").focus()
                page.keyboard.type(action.text)
                page.keyboard.press("Enter")
            case "open_app":
                page.fill("#app", action.name)
                page.click("#opening button")
            case "button":
                page.click(f"#buttons button:text-is('{action.name}')")
            case "finish":
                page.click("#done" if action.success else "#give-up")
            case other:
                raise AssertionError(f"the test knows no {other}")


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find_program()))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def elsewhere():
    """Runs things in another thread, since the browser's event loop is this one's."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def what_was_learnt_from(trajectory):
    return [
        (t.screenshot, t.action, t.resized, t.rejected, t.changed, t.sampled and t.sampled.model_dump())
        for t in trajectory.turns
    ]


def played_on_page(asked, policy, tasks, chromium, script, elsewhere):
    """The episodes of a person who does what ``script`` did, one episode after the other."""
    addresses = queue.Queue()
    page = human.Page(Heard(addresses), open=False)
    player = human.player(asked.config, policy, page, len(tasks))
    done = elsewhere.submit(collect, asked, tasks, 1, player)
    tab = chromium.new_page(viewport={"width": 1000, "height": 800})
    person = Person(tab)
    tab.goto(addresses.get(timeout=30))
    for number, trajectory in enumerate(script, start=1):
        for turn in trajectory.turns:
            person.awaited(number, turn.index)
            person.does(turn.action)
    person.sees("That was all")
    collected = done.result(30)
    tab.close()
    assert person.complaints == []
    return collected


def scripted(config, policy):
    def make(spec, env):
        return DemonstratingAgent(OracleAgent(env), players.wording(config, policy, env))

    return Player("script", make)


def test_an_episode_recorded_through_the_page_is_one_played_by_script_token_for_token(
    tmp_path, policy, tasks, chromium, elsewhere
):
    asked = experiment(tmp_path, tasks)
    script = elsewhere.submit(collect, asked, tasks, 1, scripted(asked.config, policy)).result(60).trajectories
    assert all(t.success for t in script) and {k.action.kind for t in script for k in t.turns} >= {"click", "finish"}
    run, shown = played_on_page(asked, policy, tasks, chromium, script, elsewhere)
    for mine, theirs in zip(shown, script, strict=True):
        assert what_was_learnt_from(mine) == what_was_learnt_from(theirs)
        assert (mine.verdict, mine.reward, mine.stop) == (theirs.verdict, theirs.reward, theirs.stop)
        assert mine.agent == "human:qwen3-vl-mobile"
        assert all(d["by"] == "human" for d in mine.info["decisions"].values())
        assert len(mine.info["decisions"]) == len(mine.turns)
    config = resolve(flags={"algorithm": "sft", "sft_runs": [run.name]}).config
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db", runs_dir=tmp_path / "runs") as store:
        imitated = Imitation(config, store, tmp_path / "runs", encode=policy.encode_answer)
        assert sorted(imitated.ids) == sorted(t.episode_id for t in shown)


def test_a_page_in_a_browser_is_shown_on_the_page_and_worked_by_its_vocabulary(tmp_path, policy, chromium, elsewhere):
    (tmp_path / "form.html").write_text(FORM, encoding="utf-8")
    (tmp_path / "tasks.yaml").write_text(f"""
tasks:
  - {{id: name, env: browser, description: Save the name Zoe., max_steps: 8,
     preset: {{url: "{(tmp_path / "form.html").as_uri()}"}},
     plan: [{{type: Zoe, into: Name}}, {{click: Save}}],
     checks: [{{path: text, op: contains, value: saved Zoe}}]}}
""")
    tasks = [found.task for found in load_file(tmp_path / "tasks.yaml")]
    asked = experiment(tmp_path, tasks, env="browser", browser_viewport="480x320")
    script = elsewhere.submit(collect, asked, tasks, 1, scripted(asked.config, policy)).result(60).trajectories
    assert [t.action.kind for t in script[0].turns] == ["click", "type", "click", "finish"]
    _, (mine,) = played_on_page(asked, policy, tasks, chromium, script, elsewhere)
    assert what_was_learnt_from(mine) == what_was_learnt_from(script[0]) and mine.success
    assert isinstance(mine.turns[0].action, Click) and mine.turns[1].action == TypeText(text="Zoe")


def test_a_policy_is_corrected_and_its_corrections_are_learnt(tmp_path, policy, tasks, chromium, elsewhere):
    asked = experiment(tmp_path, tasks[:1])
    addresses = queue.Queue()
    acting = players.in_process(asked.config, policy, temperature=1.0, strict=True)
    player = human.assisted(asked.config, policy, acting, human.Page(Heard(addresses), open=False), 1)
    done = elsewhere.submit(collect, asked, tasks[:1], 1, player)
    tab = chromium.new_page()
    person = Person(tab)
    tab.goto(addresses.get(timeout=30))
    person.awaited(1, 0)
    person.sees("The policy would")
    tab.click("#let")
    person.awaited(1, 1)
    assert tab.locator("#turns .badge").all_inner_texts() == ["policy"]
    tab.click("#give-up")
    person.sees("That was all")
    run, (mine,) = done.result(30)
    tab.close()
    assert [bool(t.sampled.logprobs) for t in mine.turns] == [True, False] and person.complaints == []
    assert mine.info["decisions"].keys() == {"1"} and mine.info["decisions"]["1"]["instead_of"]
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db", runs_dir=tmp_path / "runs") as store:
        (version,) = verify(asked.config, run.path, "rollout", [mine], store.blobs.get)
    assert (version.turns, version.unproved) == (1, 1) and version.largest < 1e-4
    assert "1 turns have no log-probabilities" in judged([version], None, run.path, elsewhere=False)
    learner = {"algorithm": "sft", "sft_runs": [run.name], "sft_min_reward": 0.0, "max_steps": 3, "group_size": 1}
    flags = {**learner, "groups_per_batch": 2, "learning_rate": 1e-2, "eval_every": 0, "skip_baseline": True}
    settings = Settings.load(runs_dir=tmp_path / "runs")
    config = resolve(flags={**flags, "eval_episodes": 1}).config
    trained = elsewhere.submit(cuarl.train, config, eval_tasks=tasks[:1], settings=settings).result(120)
    nll = [row["sft/nll"] for row in trained.metrics if "sft/nll" in row]
    assert nll[-1] < nll[0]


def test_what_is_done_on_a_page_becomes_a_task_file_whose_plan_solves_it(tmp_path, chromium, elsewhere):
    (tmp_path / "form.html").write_text(FORM, encoding="utf-8")
    asked = experiment(tmp_path, None, env="browser", browser_viewport="480x320")
    task = task_to_record(str(tmp_path / "form.html"), "Save the name Zoe.", None)
    addresses = queue.Queue()
    done = elsewhere.submit(record_task, asked, task, human.Page(Heard(addresses), open=False), None)
    tab = chromium.new_page()
    person = Person(tab)
    tab.goto(addresses.get(timeout=30))
    doing = [Click(x=150, y=30), TypeText(text="Zoe"), Click(x=60, y=95), Finish()]
    for turn, action in enumerate(doing):
        person.awaited(1, turn)
        person.does(action)
    person.sees("That was all")
    made = done.result(30)
    tab.close()
    assert made["plan"] == [{"type": "Zoe", "into": "Name"}, {"click": "Save"}] and person.complaints == []
    assert made["checks"] == [{"path": "text", "op": "contains", "value": "saved Zoe"}]
    write_task(tmp_path / "made.yaml", made)
    tasks = [found.task for found in load_file(tmp_path / "made.yaml")]
    backend = environments.backend(asked.config, tasks, asked.settings)
    proofs = elsewhere.submit(anyio.run, partial(prove_live, tasks, 1, backend, at_once=1, done=lambda: None))
    assert [proof.problem for (proof,) in proofs.result(60)] == [""]


# --- the command ---------------------------------------------------------------------------------------------------


class Listener:
    """The command in a process of its own, and what its page would ask of it."""

    def __init__(self, folder, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cuarl", "rollout", "--agent", "human", "--no-open", "--json", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stdout:
            said = json.loads(line)
            if said["event"] == "listening":
                break
        base, _, token = said["url"].partition("/#")
        self.client = httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}, timeout=30)

    def close(self):
        self.client.close()
        self.process.kill()
        self.process.communicate()

    def view(self, episode, turn=0):
        """What is shown once a turn is asked about, and the episode before was told."""
        view = {"version": 0}
        while not (
            view.get("waiting")
            and (view["turn"]["number"], view["turn"]["index"]) == (episode, turn)
            and view["ended"] == episode - 1
        ):
            view = self.client.get("/api/view", params={"after": view["version"]}).json()
        return view

    def post(self, path, view, **body):
        turn = {"episode": view["turn"]["episode"], "turn": view["turn"]["index"]}
        return self.client.post(path, json={**turn, **body})


def test_ctrl_c_keeps_the_episodes_that_are_over_and_what_is_refused_says_why(tmp_path):
    (tmp_path / "tasks.yaml").write_text(TASKS)
    run = Listener(tmp_path, "--tasks", "tasks.yaml", "--episodes", "4")
    try:
        first = run.view(1)
        assert first["turn"]["goal"] == "Turn Wi-Fi off." and "tap" not in first["turn"]["offers"]
        bad = run.post("/api/act", first, action={"kind": "move", "x": 3, "y": 3})
        assert (bad.status_code, "no word for move (3, 3)" in bad.json()["detail"]) == (422, True), bad.text
        assert run.post("/api/act", first, action={"kind": "click", "x": -3, "y": 3}).status_code == 422
        assert run.post("/api/let-it", first).status_code == 409, "no policy is there to be let"
        given_up = run.post("/api/act", first, action={"kind": "finish", "success": False})
        assert given_up.json()["action"]["words"] == "finish: failure"
        second = run.view(2)
        assert second["last"]["success"] is False and second["last"]["missed"]
        assert run.post("/api/act", first, action={"kind": "wait"}).status_code == 409, "a page that is behind"
        assert run.post("/api/skip", second).status_code == 200
        third = run.view(3)
        assert third["last"]["stop"] == "cancelled"
        run.post("/api/act", third, action={"kind": "click", "x": 9, "y": 99})
        run.view(3, turn=1)
        no_token = {"authorization": "Bearer x"}
        assert run.client.get("/api/view", headers=no_token).status_code == 401
        assert run.client.get("/api/view", headers={"host": "evil.example"}).status_code == 403
        assert run.client.post("/api/skip", headers={"origin": "http://evil.example"}, json={}).status_code == 403
        page = run.client.get("/", headers=no_token)
        assert page.status_code == 200 and "script-src 'self'" in page.headers["content-security-policy"]
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(120) == 130
    finally:
        run.close()
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db", runs_dir=tmp_path / "runs") as store:
        stored = sorted(store.trajectories(), key=lambda t: t.started_at)
        stops = [(t.stop, t.success, t.reward, len(t.turns)) for t in stored]
    assert stops == [
        (StopReason.DONE, False, 0.0, 1),
        (StopReason.CANCELLED, None, None, 0),
        (StopReason.CANCELLED, None, None, 1),
    ]
