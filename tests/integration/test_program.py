"""Agent programs of one's own, which ask the policy by OpenAI's protocol: recorded, proven, evaluated and trained."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="serving the policy needs the extra web")

from cuarl.env.leases import Ledger
from cuarl.trajectory import Trajectory
from cuarl.types import StopReason
from tests.integration.rollout_place import Place, Result, bare

pytestmark = pytest.mark.integration

PROGRAM = """
import json, os, sys, time, urllib.request

def post(url, body):
    key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode(), key)
    return json.loads(urllib.request.urlopen(asked).read())

task = json.loads(os.environ["CUARL_TASK"])
way, said = task["params"]["way"], [{"role": "user", "content": os.environ["CUARL_GOAL"]}]
for turn in range(0 if way == "silent" else 100 if way == "endless" else 2):
    body = {"model": os.environ["CUARL_MODEL"], "messages": said, "max_tokens": 4}
    answer = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)["choices"][0]["message"]["content"]
    said += [{"role": "assistant", "content": answer}, {"role": "user", "content": "and then?"}]
print("looking back")
if way == "posts":
    post(os.environ["CUARL_END_URL"], {"success": True, "score": 0.5, "reward": 2.5})
elif way == "prints":
    print(json.dumps({"success": False, "reward": len(said[1]["content"]) / 10, "beside": 1}))
elif way == "crashes":
    raise SystemError("no such button")
elif way == "errs":
    print('{"success": "perhaps"}')
"""


def by_attempt(trajectory: Trajectory) -> float:
    """A reward that differs within a group, so that there is something to learn from."""
    return float(trajectory.attempt)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    made = Place(tmp_path, capsys)
    (tmp_path / "program.py").write_text(PROGRAM)
    common = {"env": "program", "description": "Say {way}", "max_steps": 6}
    ways = ("posts", "prints", "silent", "crashes", "forgets", "errs", "endless")
    tasks = [{**common, "id": way, "params": {"way": [way]}} for way in ways]
    (tmp_path / "programs.json").write_text(json.dumps(tasks))
    (tmp_path / "one.json").write_text(json.dumps(tasks[:1]))
    return made


def play(
    place: Place, *options: str, command: str = f"{sys.executable} program.py", tasks: str = "programs.json"
) -> Result:
    begin, *further = options
    told = ("--env", "program", "--program-command", command, "--tasks", tasks)
    return place.cuarl(begin, *told, *further)


def test_each_way_that_a_program_can_end(place: Place) -> None:
    done = play(place, "rollout", "--agent", "policy", "--reward", "env", "--name", "r", "--json")
    assert done.code == 0, done.err
    found = {one.task_id: one for one in place.episodes()}
    posts, prints = found["posts"], found["prints"]
    assert posts.verdict is not None and (posts.verdict.success, posts.verdict.score, posts.reward) == (True, 0.5, 2.5)
    assert prints.verdict is not None and (prints.verdict.success, prints.stop) == (False, StopReason.ENV_DONE)
    assert prints.reward == pytest.approx(len(prints.turns[0].sampled.text) / 10)
    assert prints.goal == "Say prints"
    endless = found["endless"]
    assert (endless.stop, len(endless.turns)) == (StopReason.MAX_TURNS, 6)
    assert endless.verdict is not None and not endless.verdict.success
    failures = {way: one.failure.message for way, one in found.items() if one.failure}
    words = {
        "silent": "ended without asking its model: exit status 0, saying at last: looking back",
        "crashes": "told no verdict: exit status 1, saying at last: SystemError: no such button",
        "forgets": "told no verdict: exit status 0, saying at last: looking back",
        "errs": "verdict can't be read: Input should be a valid boolean",
    }
    assert failures.keys() == words.keys()
    assert all(said in failures[way] for way, said in words.items()), failures
    assert not Ledger(place.folder / "sessions").leases()
    # an earlier answer went into the next prompt as the tokens that it was sampled as
    first, second = (turn.sampled for turn in posts.turns)
    assert first is not None and second is not None
    assert second.prompt_ids[len(first.prompt_ids) :][: len(first.token_ids)] == first.token_ids
    proven = place.cuarl("rollout", "verify", "r", "--json")
    assert proven.code == 0, proven.err
    assert sum(version["turns"] for version in json.loads(proven.out)) == sum(len(one.turns) for one in found.values())


def test_a_policy_is_trained_and_evaluated_by_what_a_program_does_with_it(place: Place) -> None:
    sizes = ("--group-size", "2", "--groups-per-batch", "1", "--max-steps", "1", "--eval-episodes", "1")
    scored = (
        "--reward",
        f"{__name__}:by_attempt",
        "--skip-baseline",
        "--eval-tasks",
        "one.json",
        "--name",
        "t",
        "--json",
    )
    trained = play(place, "train", *sizes, *scored, tasks="one.json")
    assert trained.code == 0, trained.err
    (step,) = [line for line in trained.lines if line["event"] == "metrics"]
    assert step["optim/updates"] == 1 and step["optim/grad_norm"] > 0
    groups = {one.group_id for one in place.episodes() if one.purpose == "train"}
    assert len(groups) == 1
    measured = place.cuarl("eval", "t", "--episodes", "1", "--json")
    assert measured.code == 0, measured.err
    assert measured.lines[-1]["evaluation"]["baselines"] == {}


@pytest.mark.parametrize(
    ("options", "command", "message"),
    [
        (("--agent", "random"), f"{sys.executable} program.py", "in env program only a policy can act"),
        (("--agent", "policy"), "no-such-program", "there is no program no-such-program"),
        (("--agent", "policy"), "'", "can't be read as a command line: No closing quotation"),
        (("--agent", "policy", "--history-images", "2"), f"{sys.executable} program.py", "history_images"),
    ],
    ids=["scripted", "missing", "quotes", "prompts"],
)
def test_what_can_not_be_is_one_error(place: Place, options: tuple[str, ...], command: str, message: str) -> None:
    done = play(place, "rollout", *options, command=command)
    assert done.code != 0 and message in done.err and done.err.count("error:") == 1
