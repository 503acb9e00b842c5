"""``cuarl rollout``: collected, shown and verified on the simulator, with a policy of random weights."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from PIL import Image

from cuarl.trajectory import Trajectory
from tests import warm
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.unit.store.samples import save

from .rollout_place import Place, bare

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


def test_oracle_episodes_are_stored_whole_with_their_pictures(place):
    done = place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "oracle", "--episodes", "4", "--json")
    assert done.code == 0
    start, *episodes, end = done.lines
    assert (start["event"], start["episodes"], end["event"]) == ("start", 4, "done")
    assert {e["task_id"] for e in episodes} == {"wifi_off", "dark_on"}
    assert (end["summary"]["n"], end["summary"]["success_rate"]) == (4, 1.0)
    with place.store() as store:
        stored = list(store.trajectories(run=start["run_id"]))
        assert {t.episode_id for t in stored} == {e["episode_id"] for e in episodes}
        assert all(store.blobs.exists(turn.screenshot.digest) for t in stored for turn in t.turns)
        assert store.run(start["run_id"]).status == "completed"
    assert json.loads((place.folder / end["path"] / "manifest.json").read_text())["counts"] == {"episodes": 4}


def test_group_is_attempts_at_one_instance(place):
    run_id = place.cuarl(
        "rollout", "--tasks", "wifi_off,tasks.json", "--agent", "random", "--group-size", "2", "--json"
    ).lines
    assert run_id == [], "an unknown id is refused"
    lines = place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "random", "--group-size", "2", "--json").lines
    with place.store() as store:
        groups = store.groups(run=lines[0]["run_id"])
    assert [len(g.trajectories) for g in groups] == [2, 2]
    for group in groups:
        first, second = group.trajectories
        assert first.seed == second.seed == group.seed
        assert first.turns[0].screenshot == second.turns[0].screenshot
        assert [t.action for t in first.turns] != [t.action for t in second.turns]


def test_same_seed_gives_the_same_episodes(place):
    runs = [place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "random", "--json").lines for _ in range(2)]
    other = place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "random", "--seed", "1", "--json").lines
    with place.store() as store:
        found = [[seen(t) for t in store.trajectories(run=lines[0]["run_id"])] for lines in (*runs, other)]
    assert found[0] == found[1] != found[2]


def seen(t: Trajectory):
    return t.seed, t.stop, t.reward, [(x.screenshot, x.action, x.rejected, x.changed) for x in t.turns]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--agent", "orcale"], 'did you mean "oracle"?'),
        (["--agent", "oracle", "--temperature", "2"], "--temperature has no effect"),
        (["--agent", "oracle", "--env", "simm"], 'did you mean "sim"?'),
        (["--agent", "oracle", "--reward", "simpel"], 'did you mean "simple"?'),
        (["--agent", "oracle", "--difficulty", "hard"], "no task is left"),
    ],
)
def test_wrong_usage_starts_nothing(place, args, message):
    done = place.cuarl("rollout", "--tasks", "tasks.json", *args)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not (place.folder / "runs").exists()


def test_dry_run_writes_nothing(place):
    done = place.cuarl(
        "rollout", "--tasks", "tasks.json", "--agent", "nothing", "--group-size", "3", "--dry-run", "--json"
    )
    assert (done.code, json.loads(done.out)["episodes"]) == (0, 6)
    assert not (place.folder / "runs").exists()


def test_show_draws_every_turn_and_the_last_screen(place):
    place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "oracle", "--episodes", "1")
    done = place.cuarl("rollout", "show", "--json")
    shown = json.loads(done.out)
    turns = Trajectory.model_validate(shown["episode"]).turns
    assert [Path(p).name for p in shown["pictures"]] == [f"turn-{i + 1:03d}.png" for i in range(len(turns))] + [
        "final.png"
    ]
    for path in shown["pictures"]:
        with Image.open(path) as picture:
            assert picture.width == 384
    text = place.cuarl("rollout", "show", shown["episode"]["episode_id"][:20], "--out", "drawn")
    assert "finish: success" in text.out
    assert "\x1b" not in text.out
    assert (place.folder / "drawn" / "final.png").is_file()


def test_show_of_a_stranger_says_so(place):
    assert "no episodes in the store" in place.cuarl("rollout", "show").err
    place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "nothing")
    done = place.cuarl("rollout", "show", "zzz")
    assert (done.code, "none begins so" in done.err) == (2, True)


@pytest.fixture
def sampled(place, qwen3_folder):  # noqa: F811
    """A run of a policy with random weights."""
    done = place.cuarl(
        "rollout",
        "--tasks",
        "tasks.json",
        "--group-size",
        "3",
        "--model-name",
        str(qwen3_folder),
        "--max-tokens",
        "6",
        "--device",
        "cpu",
        "--json",
    )
    assert done.code == 0, done.err
    return done.lines


def test_the_size_at_which_a_policy_saw_the_screens_is_shown(place, sampled):
    found = json.loads(place.cuarl("rollout", "show", "--json").out)["episode"]
    turn = Trajectory.model_validate(found).turns[0]
    width, height = turn.resized
    shown = f"{turn.screenshot.width}x{turn.screenshot.height}, seen at {width}x{height}"
    assert shown in place.cuarl("rollout", "show").out
    said = place.cuarl("rollout", "show", "--turn", "1").out
    assert found["goal"] in said.partition("raw answer:")[0] and "[picture]" in said
    assert f"raw answer:\n{turn.sampled.text}" in said and "read as: " in said
    missing = place.cuarl("rollout", "show", "--turn", "99")
    assert missing.code == 2 and f"the episode has {len(found['turns'])} turns, and no turn 99" in missing.err


def test_recorded_logprobs_are_those_of_the_recorded_policy(place, sampled):
    done = place.cuarl("rollout", "verify", "--json")
    assert done.code == 0, done.err
    (version,) = json.loads(done.out)
    assert version["policy_version"] == 0
    assert version["turns"] == sum(line["turns"] for line in sampled if line["event"] == "episode")
    assert 0 < version["largest"] < 1e-4


@pytest.mark.parametrize("older", ["text", "drop"])
def test_a_budget_of_tokens_bounds_what_is_stored_and_what_is_stored_is_what_was_sampled(place, qwen3_folder, older):  # noqa: F811
    words = [
        "rollout", "--tasks", "tasks.json", "--group-size", "2", "--model-name", str(qwen3_folder), "--max-tokens", "6",
        "--device", "cpu", "--history-images", "3", "--history-turns", "4", "--history-older", older,
        "--max-prompt-tokens",
    ]  # fmt: skip
    done = place.cuarl(*words, "9")
    assert done.code == 2
    needed = done.err.split("--max-prompt-tokens ")[1].split()[0]
    assert f"takes {needed} tokens, and max_prompt_tokens is 9" in done.err
    budget = int(needed) + 250
    done = place.cuarl(*words, str(budget), "--json")
    assert done.code == 0, done.err
    with place.store() as store:
        turns = [t for e in store.trajectories(run=done.lines[0]["run_id"]) for t in e.turns]
    sizes = [len(t.sampled.prompt_ids) for t in turns]
    assert budget - 250 < max(sizes) <= budget
    assert {len(t.sampled.images) for t in turns} >= {1, 2}
    (version,) = json.loads(place.cuarl("rollout", "verify", "--json").out)
    assert version["turns"] == len(turns) and 0 < version["largest"] < 1e-4


def test_verify_finds_a_logprob_that_was_not_sampled(place, sampled):
    with place.store() as store:
        t = next(store.trajectories(run=sampled[0]["run_id"]))
        logprobs = (t.turns[1].sampled.logprobs[0] - 0.01, *t.turns[1].sampled.logprobs[1:])
        wrong = t.turns[1].model_copy(update={"sampled": t.turns[1].sampled.model_copy(update={"logprobs": logprobs})})
        save(store, t.model_copy(update={"turns": (t.turns[0], wrong, *t.turns[2:])}))
    done = place.cuarl("rollout", "verify")
    assert done.code == 3
    assert f"{t.episode_id}#1" in done.err
    assert "1.0e-02" in done.err
    assert "the bar is 0.0001 (float32)" in done.err
    coarse = place.cuarl("rollout", "verify", "--dtype", "bfloat16")
    assert coarse.code == 0 and "the bar is 0.25 (bfloat16)" in coarse.err
    assert place.cuarl("rollout", "verify", "--dtype", "bfloat16", "--bar", "0.001").code == 3


def test_verify_states_the_bar_of_the_format_that_it_recomputes_in(place, qwen3_folder):  # noqa: F811
    done = place.cuarl(
        "rollout",
        "--tasks",
        "tasks.json",
        "--group-size",
        "2",
        "--model-name",
        str(qwen3_folder),
        "--max-tokens",
        "6",
        "--device",
        "cpu",
        "--dtype",
        "bfloat16",
    )
    assert done.code == 0, done.err
    (version,) = json.loads(place.cuarl("rollout", "verify", "--json").out)
    assert version["dtype"] == "bfloat16"
    assert 0 <= version["mean"] <= version["largest"] < 0.25


def test_verify_of_a_run_without_a_policy_has_nothing_to_say(place):
    place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "nothing")
    done = place.cuarl("rollout", "verify")
    assert (done.code, "nothing to verify" in done.err) == (2, True)


def test_interrupt_keeps_what_was_complete_and_marks_the_rest(place):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = "rollout --tasks tasks.json --agent random --episodes 5000 --max-concurrent-rollouts 4 --json"
    process = warm.Command(*words.split(), cwd=place.folder, env=environment, stdout=warm.PIPE, stderr=warm.PIPE)
    seen_lines = [process.stdout.readline() for _ in range(6)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    run_id = json.loads(seen_lines[0])["run_id"]
    with place.store() as store:
        assert store.run(run_id).status == "cancelled"
        statuses = [e.status for e in store.episodes(run=run_id)]
    assert statuses.count("completed") >= 5
    # those in flight, and one that may just have taken the place of one of them
    assert statuses.count("cancelled") <= 4 + 1
    assert set(statuses) <= {"completed", "cancelled"}


def test_a_name_that_is_made_up_says_who_acts_on_what(place):
    assert place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "oracle").code == 0
    assert place.cuarl("eval", "nothing", "--tasks", "tasks.json", "--episodes", "2").code == 0
    names = sorted(path.name.rsplit("--", 1)[0] for path in (place.folder / "runs").iterdir() if path.is_dir())
    assert [name for name in names if "--" in name] == ["tasks--nothing", "tasks--oracle"]


def test_a_database_in_a_folder_that_is_not_there_is_told(place):
    asked = ("rollout", "--tasks", "tasks.json", "--agent", "nothing", "--db", "sqlite:///new/deep/x.db")
    assert "the folder new/deep is not there yet" in place.cuarl(*asked).err
    assert (place.folder / "new" / "deep" / "x.db").is_file()
    assert "not there yet" not in place.cuarl(*asked).err
