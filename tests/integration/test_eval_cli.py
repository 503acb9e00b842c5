"""``cuarl eval`` on the simulator: scripted agents, a checkpoint, comparisons, bars."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuarl.evaluate.suite import read_results, write_results
from cuarl.policy.load import load_policy
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.rollout.seeds import EVAL_SEEDS
from cuarl.store.records import HumanVerdict
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401

from .rollout_place import Place, bare

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


def test_evaluation_is_printed_stored_and_written(place):
    done = place.cuarl("eval", "oracle", "--tasks", "tasks.json", "--episodes", "6")
    assert done.code == 0, done.err
    rows = {line.split()[0]: line.split() for line in done.out.splitlines()}
    assert rows["all"][1:5] == ["6", "2", "100.0", "%"]
    assert {"easy", "medium"} <= set(rows)
    (path,) = place.folder.glob("runs/*/evals/tasks-step-000000/results.json")
    found = read_results(path)
    assert (found.overall.n, found.agent, found.limited) == (6, "oracle", "")
    assert all(o.seed in EVAL_SEEDS for o in found.outcomes)
    with place.store() as store:
        (record,) = store.evaluations()
        assert store.evaluation_episode_ids(record.id) == [o.episode_id for o in found.outcomes]
        assert record.metrics["success_rate"] == 1.0
        assert {e.purpose for e in store.episodes(evaluation=record.id)} == {"eval"}


def test_missed_bar_is_told_by_the_exit_code_and_loses_nothing(place):
    done = place.cuarl("eval", "nothing", "--tasks", "tasks.json", "--episodes", "2", "--fail-under", "0.5", "--json")
    assert done.code == 3
    assert "0.0 % is below 50.0 %" in done.err
    evaluation = done.lines[-1]["evaluation"]
    assert (evaluation["overall"]["success_rate"], evaluation["overall"]["false_completion_rate"]) == (0.0, 0.0)
    assert read_results(place.folder / done.lines[-1]["path"]).overall.n == 2


def test_comparison_is_paired_and_can_be_made_from_what_was_measured(place):
    fresh = place.cuarl("eval", "--compare", "nothing", "oracle", "--tasks", "tasks.json", "--episodes", "8", "--json")
    assert fresh.code == 0, fresh.err
    found = fresh.lines[-1]
    assert (found["event"], found["difference"], found["pairs"], found["tasks"]) == ("comparison", 1.0, 8, 2)
    folders = sorted(str(p.parent) for p in place.folder.glob("runs/*/evals/*/results.json"))
    by_agent = {read_results(place.folder / f).agent: f for f in folders}
    again = place.cuarl("eval", "--compare", by_agent["do-nothing"], by_agent["oracle"])
    assert (again.code, "+100.0 points" in again.err) == (0, True)
    assert (
        "oracle is better"
        in place.cuarl("eval", "--compare", "nothing", "oracle", "--tasks", "tasks.json", "--episodes", "8").err
    )


def test_a_row_for_each_task_shows_both_targets(place):
    done = place.cuarl(
        "eval", "--compare", "nothing", "oracle", "--tasks", "tasks.json", "--episodes", "8", "--by-task"
    )
    lines = done.out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("task "))
    rows = [line.split() for line in lines[start + 1 :]]
    assert [(row[1:4], row[5:8]) for row in rows] == [(["4", "0.0", "%"], ["4", "100.0", "%"])] * 2
    told = place.cuarl("eval", "oracle", "--tasks", "tasks.json", "--episodes", "8", "--by-task", "--json").lines[-1]
    assert [part["n"] for part in told["evaluation"]["by_task"].values()] == [4, 4]


def test_fewer_episodes_than_tasks_are_labelled_as_limited(place):
    done = place.cuarl("eval", "nothing", "--tasks", "tasks.json", "--episodes", "1")
    assert "limited: a sample of 1 of 2 tasks" in done.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nosuch"], 'there is no run "nosuch"'),
        (["http://localhost:9/v1"], "--model-name"),
        (["oracle", "--compare", "nothing", "oracle"], "--compare takes two targets"),
        (["--curve", "nosuch", "--by-task"], "--curve takes runs and --out alone"),
    ],
)
def test_wrong_usage_starts_nothing(place, args, message):
    done = place.cuarl("eval", *args, "--tasks", "tasks.json")
    assert (done.code, message in done.err) == (2, True)
    assert not (place.folder / "runs").exists()


@pytest.fixture
def checkpoint(tmp_path, qwen3_folder):  # noqa: F811
    """An adapter that training might have saved at step 8."""
    folder = tmp_path / "step-000008"
    load_policy(ModelSpec(model=str(qwen3_folder), lora=LoraSpec(), device="cpu")).model.save_pretrained(folder)
    (folder / "cuarl.json").write_text(json.dumps({"base_model": str(qwen3_folder), "step": 8}))
    return folder


def test_checkpoint_is_evaluated_on_the_base_that_it_names_with_baselines_beside(place, checkpoint):
    done = place.cuarl(
        "eval",
        str(checkpoint),
        "--tasks",
        "tasks.json",
        "--episodes",
        "2",
        "--max-tokens",
        "6",
        "--device",
        "cpu",
        "--json",
    )
    assert done.code == 0, done.err
    evaluation = done.lines[-1]["evaluation"]
    assert (evaluation["step"], evaluation["policy_version"], evaluation["overall"]["n"]) == (8, 8, 2)
    assert set(evaluation["baselines"]) == {"nothing", "random"}
    assert done.lines[-1]["path"].endswith("tasks-step-000008/results.json")


def test_the_curve_of_a_run_is_its_evaluations_by_step_and_can_be_drawn(place):
    common = ("--tasks", "tasks.json", "--episodes", "6", "--json")
    for name in ("one", "two"):
        assert place.cuarl("eval", "nothing", *common, "--name", name).code == 0
    later = read_results(place.folder / place.cuarl("eval", "oracle", *common).lines[-1]["path"])
    for name in ("one", "two"):
        write_results(
            place.folder / "runs" / name / "evals" / "tasks-step-000008", later.model_copy(update={"step": 8})
        )
    shown = place.cuarl("eval", "--curve", "one", "--curve", "two", "--out", "curve.svg")
    assert shown.code == 0, shown.err
    cells = [line.split() for line in shown.out.splitlines()]
    assert [row[0] for row in cells] == ["one,", "step", "0", "8", "two,", "step", "0", "8"]
    assert "+100.0" in cells[3]
    assert "tasks, step 8: mean of 2 runs 100.0 %" in shown.err
    assert (place.folder / "curve.svg").read_text().startswith("<svg")
    (data,) = place.cuarl("eval", "--curve", "one", "--json").lines
    (curve,) = data["curves"]
    assert [(p["step"], p["success_rate"]) for p in curve["points"]] == [(0, 0.0), (8, 1.0)]
    assert curve["points"][1]["since_first"]["pairs"] == 6
    assert data["together"] == []


def test_what_people_said_of_verdicts_holds_for_evaluations_that_were_made(place):
    common = ("--tasks", "tasks.json", "--episodes", "4", "--json")
    for agent in ("nothing", "oracle"):
        assert place.cuarl("eval", agent, *common, "--name", agent).code == 0
    folders = [str(next(place.folder.glob(f"runs/{agent}/evals/*"))) for agent in ("nothing", "oracle")]
    before = place.cuarl("eval", "--compare", *folders, "--json").lines[-1]["difference"]
    first = read_results(Path(folders[0])).outcomes[0]
    with place.store() as store:
        store.save_human_verdict(HumanVerdict(episode_id=first.episode_id, success=True, reason="it was done"))
    assert before == 1.0 and place.cuarl("eval", "--compare", *folders, "--json").lines[-1]["difference"] == 0.75
    (curve,) = place.cuarl("eval", "--curve", "nothing", "--json").lines[0]["curves"]
    assert [point["success_rate"] for point in curve["points"]] == [0.25]
    assert read_results(Path(folders[0])).overall.success_rate == 0.0, "what was recorded stays"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--curve", "latest"), "the run was never evaluated"),
        (("--out", "x.svg"), "--curve takes runs and --out alone"),
        (("oracle", "--curve", "latest"), "--curve takes runs and --out alone"),
        (("--curve", "latest", "--out", "x.png"), "fix: --out x.svg"),
    ],
)
def test_curves_of_nothing_are_refused(place, args, message):
    assert place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "nothing").code == 0
    done = place.cuarl("eval", *args)
    assert (done.code, message in done.err) == (2, True), done.err
