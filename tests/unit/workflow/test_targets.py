"""What a person means by the thing to evaluate."""

import json

import pytest
import torch
from safetensors.torch import save_file

from cuarl.config.load import resolve
from cuarl.errors import CheckpointError, ConfigError
from cuarl.evaluate.suite import Evaluation, write_results
from cuarl.evaluate.summary import Outcome, summarise
from cuarl.run import Run
from cuarl.settings import Settings
from cuarl.store import RunRecord
from cuarl.store.records import HumanVerdict
from cuarl.trajectory import Verdict
from cuarl.workflow.episodes import open_store
from cuarl.workflow.loaded_run import load_run
from cuarl.workflow.targets import checkpoint, resolve_target, with_run_config
from tests.unit.store.samples import plain as sample_episode


@pytest.fixture
def settings(tmp_path):
    return Settings.load(runs_dir=tmp_path / "runs")


@pytest.fixture
def run(settings):
    """A run with checkpoints of steps 4 and 8, the last of them committed."""
    made = Run.create(
        settings.runs_dir, resolve(flags={"tasks": ["settings"], "max_turns": 7}), name="mine", kind="train"
    )
    for step in (4, 8):
        folder = made.checkpoints_dir / f"step-{step:06d}"
        folder.mkdir(parents=True)
        (folder / "adapter_config.json").write_text("{}")
        save_file({"lora_B": torch.zeros(2, 2)}, folder / "adapter_model.safetensors")
        (folder / "cuarl.json").write_text(json.dumps({"base_model": "tiny", "step": step}))
    (made.checkpoints_dir / "latest.json").write_text(json.dumps({"step": 8}))
    return made


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("oracle", "scripted", "oracle"), ("do-nothing", "scripted", "nothing"), ("base", "policy", "base"),
        ("http://host:1/v1", "endpoint", "http://host:1/v1"), ("tinker", "tinker", "tinker"),
        ("tinker://a/b", "tinker", "tinker://a/b"),
    ],
)  # fmt: skip
def test_names_mean_agents_the_base_and_places(settings, text, kind, name):
    found = resolve_target(text, settings)
    assert (found.kind, found.name, found.step, found.run) == (kind, name, 0, None)


def test_a_run_means_its_last_checkpoint_and_a_step_of_it_that_one(settings, run):
    for text in ("mine", "mi", "latest", "mine@8"):
        found = resolve_target(text, settings)
        assert (found.kind, found.step, found.run, found.model) == ("policy", 8, run.path, "tiny")
        assert found.adapter == str(run.checkpoints_dir / "step-000008")
    assert resolve_target("mine@4", settings).step == 4
    zero = resolve_target("mine@0", settings)
    assert (zero.adapter, zero.step, zero.run) == (None, 0, run.path)


def test_the_best_checkpoint_is_chosen_with_a_word_of_warning(settings, run):
    rows = [{"step": 4, "eval/tasks/success_rate": 0.9}, {"step": 8, "eval/tasks/success_rate": 0.5}]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    notes = []
    assert resolve_target("mine@best:eval/tasks/success_rate", settings, notes.append).step == 4
    assert notes == ["step 4 of 2 checkpoints has the highest eval/tasks/success_rate, 0.9"]
    with pytest.raises(ConfigError, match="no checkpoint of the run has a value of success"):
        resolve_target("mine@best", settings)


def test_the_best_checkpoint_is_chosen_by_the_verdicts_that_hold(settings, run):
    with open_store(settings) as store:
        store.start_run(RunRecord(id="r", name="mine"))
        for step, success in ((4, False), (8, True)):
            done = sample_episode(f"e{step}", run_id="r", verdict=Verdict(success=success, score=float(success)))
            store.enqueue(done)
            outcomes = (Outcome.of(done),)
            made = Evaluation(
                label="t", step=step, seed=0, started_at=0, outcomes=outcomes, overall=summarise(outcomes)
            )
            write_results(run.evals_dir / f"t-{step}", made)
        store.drain()
        assert resolve_target("mine@best", settings).step == 8
        for step, success in ((4, True), (8, False)):
            store.save_human_verdict(HumanVerdict(episode_id=f"e{step}", success=success))
    notes = []
    assert resolve_target("mine@best", settings, notes.append).step == 4
    assert "with verdicts of people" in notes[0]
    assert [e.overall.success_rate for e in load_run("mine", settings).evaluations] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mine@5", "no checkpoint of step 5 .it has step-000004, step-000008"),
        ("mine@last", '"last" is no step'),
        ("yours", 'no run "yours"'),
        ("http://me:secret@host/v1", "password or key in its URL"),
    ],
    ids=["step", "no step", "run", "secret"],
)
def test_what_means_nothing_is_said(settings, run, text, said):
    with pytest.raises(ConfigError, match=said) as error:
        resolve_target(text, settings)
    assert "secret" not in str(error.value)


def test_weights_that_tinker_keeps_are_there_and_not_here(settings, run):
    folder = run.checkpoints_dir / "step-000008"
    (folder / "tinker.json").write_text(json.dumps({"sampler": "tinker://a/w", "state": "tinker://a/s", "step": 8}))
    found = resolve_target(str(folder), settings)
    assert (found.kind, found.name, found.step, found.run) == ("tinker", "tinker://a/w", 8, run.path)
    with pytest.raises(CheckpointError, match="Tinker keeps the weights"):
        checkpoint(folder)


def test_a_folder_without_a_checkpoint_is_none(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint here"):
        checkpoint(tmp_path)


def test_a_run_is_evaluated_as_it_was_trained_but_for_what_is_asked(run):
    config = with_run_config(resolve(flags={"seed": 5}), run.path)
    assert (config.max_turns, config.seed, config.tasks) == (7, 5, ("settings",))
    assert with_run_config(resolve(flags={"seed": 5}), None).max_turns != 7


def trained(settings, **flags):
    return Run.create(settings.runs_dir, resolve(flags=flags), name="other", kind="train").path


def test_a_run_that_imitated_is_evaluated_on_the_tasks_that_are_named(settings):
    run = trained(settings, **{"algorithm": "sft", "algorithm.runs": ["shown"], "eval_tasks": ["settings"]})
    config = with_run_config(resolve(flags={"tasks": ["navigation"]}), run)
    assert (config.tasks, config.eval_tasks) == ((), ("navigation",))


def test_what_does_not_go_with_how_a_run_was_trained_is_told_with_where_it_stands(settings):
    run = trained(settings, history_older="drop")
    with pytest.raises(ConfigError, match="history_older has no effect with history_turns 0"):
        with_run_config(resolve(flags={"history_turns": 0}), run)
