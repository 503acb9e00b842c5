"""``cuarl train`` as a person runs it: measured, killed, resumed, interrupted, imitating, in two processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText

from cuarl.workflow.targets import checkpoint as target_of
from tests import warm
from tests.integration.rollout_place import Place, bare
from tests.integration.small_model import qwen3_folder, qwen25_folder, tokenizer  # noqa: F401
from tests.unit.policy.other_families import save_family
from tests.unit.policy.qwen_vl.test_families import save_qwen

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
LUCK = '''
"""A reward that depends on the answers alone, so that a policy which knows nothing has something to learn."""
import hashlib

def luck(trajectory):
    if trajectory.verdict is None:
        return None
    answers = repr([turn.sampled.token_ids for turn in trajectory.turns])
    return float(int(hashlib.sha256(answers.encode()).hexdigest(), 16) % 3)
'''


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "luck.py").write_text(LUCK)
    return Place(tmp_path, capsys)


@pytest.fixture(scope="module")
def options(qwen3_folder):  # noqa: F811
    """A run of four small steps."""
    return [
        "train",
        "--tasks",
        "tasks.json",
        "--eval-tasks",
        "tasks.json",
        "--model-name",
        str(qwen3_folder),
        "--device",
        "cpu",
        "--reward",
        "luck:luck",
        "--group-size",
        "3",
        "--groups-per-batch",
        "2",
        "--max-turns",
        "3",
        "--max-tokens",
        "6",
        "--max-steps",
        "4",
        "--save-every",
        "2",
        "--eval-every",
        "3",
        "--eval-episodes",
        "4",
        "--learning-rate",
        "1e-2",
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, options):
    """A run that nobody interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    Place(folder, None)
    (folder / "luck.py").write_text(LUCK)
    code, err = finished(started(folder, [*options, "--name", "run"]))
    assert code == 0, err
    return folder / "runs" / "run"


def started(folder, args, launcher=()):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}", "OMP_NUM_THREADS": "1"}
    if not launcher:
        return warm.Command(*args, cwd=folder, env=environment, stdout=warm.DEVNULL, stderr=warm.PIPE)
    return subprocess.Popen(
        [sys.executable, "-m", *launcher, "cuarl", *args],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finished(process):
    """Exit code and standard error."""
    _, err = process.communicate(timeout=240)
    return process.returncode, err


def wait_until(holds, process):
    while not holds():
        assert process.poll() is None, finished(process)
        time.sleep(0.01)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measured(run):
    """Metrics of a run without what depends on the clock."""
    return [
        {name: v for name, v in row.items() if name != "time" and not name.startswith(("time/", "perf/"))}
        for row in lines(run / "metrics.jsonl")
    ]


def checkpoint(run, step=4):
    return {p.name: p.read_bytes() for p in (run / "checkpoints" / f"step-{step:06d}").iterdir()}


def test_a_run_is_planned_measured_before_and_after_and_says_what_next(place, options):
    result = place.cuarl(*options, "--name", "mine")
    assert result.code == 0, result.err
    run = place.folder / "runs" / "mine"
    assert [row["step"] for row in measured(run)] == [0, 1, 2, 3, 4]
    assert [row["step"] for row in measured(run) if "eval/tasks/n" in row] == [0, 3, 4]
    assert any(row.get("optim/updates") for row in measured(run))
    lines = result.err.splitlines()
    begins = next(i for i, line in enumerate(lines) if line.startswith("model "))
    warned, told = lines[:begins], lines[begins:]
    assert any("evaluation tasks are trained on, too" in line for line in warned)
    assert [line.split()[1] for line in told if line.startswith("step ")] == ["1/4", "2/4", "3/4", "4/4"]
    assert [line.split(":")[0] for line in told if line.startswith("evaluation at")] == [
        f"evaluation at step {step}" for step in (0, 3, 4)
    ]
    assert [line.split()[0] for line in told[-3:]] == ["success", "in:", "next:"]
    assert "before" in result.out.splitlines()[0]
    with place.store() as store:
        (record,) = store.runs()
        assert (record.status, record.step) == ("completed", 4)
        assert {e.purpose for e in store.episodes(run=record.id)} == {"train", "eval"}
        assert [p.version for p in store.policies(run=record.id)] == [2, 4]


def results(folder):
    return {p.parent.name: p.read_bytes() for p in folder.glob("evals/*/results.json")}


def test_an_evaluation_with_other_settings_has_a_folder_and_a_line_of_its_own(place, options):
    small = [*options, "--max-steps", "2", "--eval-every", "1", "--save-every", "1"]
    assert place.cuarl(*small, "--name", "mine").code == 0
    run = place.folder / "runs" / "mine"
    made = results(run)
    assert sorted(made) == ["tasks-step-000000", "tasks-step-000001", "tasks-step-000002"]
    assert place.cuarl("eval", "mine@1", "--episodes", "2", "--no-baselines").code == 0
    again = results(run)
    (other,) = again.keys() - made.keys()
    assert other.startswith("tasks-step-000001-") and {name: again[name] for name in made} == made
    shown = place.cuarl("eval", "--curve", "mine")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert [line for line in lines if line.startswith("mine")] == [
        "mine, tasks (episodes 4)",
        "mine, tasks (episodes 2)",
    ]
    assert [line.split()[0] for line in lines[1:5]] == ["step", "0", "1", "2"] and len(lines) == 8
    assert "evaluated with other settings, so they are lines of their own" in shown.err
    same = place.cuarl("eval", "mine@1", "--no-baselines", "--json").lines[-1]  # what training measured with
    assert same["path"].endswith("tasks-step-000001/results.json") and results(run).keys() == again.keys()


def test_an_evaluation_with_a_name_is_recorded_in_a_run_of_that_name(place, options):
    small = [*options, "--max-steps", "1", "--eval-episodes", "1", "--skip-baseline"]
    assert place.cuarl(*small, "--name", "mine").code == 0
    before = results(place.folder / "runs" / "mine")
    done = place.cuarl("eval", "mine", "--episodes", "2", "--no-baselines", "--name", "told")
    assert done.code == 0, done.err
    assert list(results(place.folder / "runs" / "told")) == ["tasks-step-000001"]
    assert json.loads((place.folder / "runs" / "told" / "manifest.json").read_text())["kind"] == "eval"
    assert results(place.folder / "runs" / "mine") == before
    with place.store() as store:
        ids = {r.name: r.id for r in store.runs()}
        assert [len(store.episodes(run=ids[name], purpose="eval")) for name in ("mine", "told")] == [1, 2]
    assert place.cuarl("eval", "mine", "--episodes", "2", "--name", "told").code == 2


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 2, 4])
def test_a_run_that_is_killed_and_resumed_equals_one_that_was_not(place, options, whole, rows):
    cut = place.folder / "runs" / "run"
    process = started(place.folder, [*options, "--name", "run"])
    wait_until(lambda: (cut / "manifest.json").exists() and len(lines(cut / "metrics.jsonl")) >= rows, process)
    process.kill()
    assert finished(process)[0] == -signal.SIGKILL
    code, err = finished(started(place.folder, ["train", "--resume", "run"]))
    assert code == 0, err
    assert checkpoint(cut) == checkpoint(whole)
    assert measured(cut) == measured(whole)


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_learnt_and_says_how_to_go_on(place, options):
    args = [*options, "--save-every", "0", "--max-steps", "500", "--skip-baseline"]
    process = started(place.folder, [*args, "--name", "mine"])
    run = place.folder / "runs" / "mine"
    wait_until(lambda: len(lines(run / "metrics.jsonl")) >= 2, process)
    process.send_signal(signal.SIGINT)
    code, err = finished(process)
    assert code == 130, err
    assert "cuarl train --resume mine" in err
    assert json.loads((run / "manifest.json").read_text())["status"] == "cancelled"
    # only while a step is being learnt, and not collected, does its interruption cost what was not saved yet
    assert all(int(p.name[-6:]) >= 2 for p in (run / "checkpoints").glob("step-*"))


@pytest.mark.slow
def test_c35_the_reference_stays_the_adapter_that_a_run_began_with_even_if_that_changes(place, options):
    """With a history window that packs, too."""
    short = [*options, "--skip-baseline", "--eval-every", "0", "--eval-episodes", "1", "--save-every", "1"]
    window = ["--history-images", "3", "--history-turns", "3"]
    assert place.cuarl(*short, *window, "--name", "first", "--max-steps", "2").code == 0
    runs = place.folder / "runs"
    start = runs / "first" / "checkpoints" / "step-000002"
    held = [
        *short,
        *window,
        "--load-checkpoint-path",
        str(start),
        "--kl-penalty-coef",
        "0.1",
        "--kl-reference",
        "start",
    ]
    assert place.cuarl(*held, "--name", "whole").code == 0
    assert place.cuarl(*held, "--name", "cut", "--max-steps", "2").code == 0
    file = start / "adapter_model.safetensors"
    save_file({name: 2 * value for name, value in load_file(file).items()}, file, metadata={"format": "pt"})
    resumed = place.cuarl("train", "--resume", "cut", "--max-steps", "4")
    assert resumed.code == 0, resumed.err
    rows = measured(runs / "whole")
    assert [abs(row["policy/kl_ref"]) < 1e-6 for row in rows] == [True, False, False, False]
    assert max(row["train/packed_frac"] for row in rows) > 0
    assert [row["policy/kl_ref"] for row in measured(runs / "cut")] == [row["policy/kl_ref"] for row in rows]
    assert (
        checkpoint(runs / "cut")["adapter_model.safetensors"] == checkpoint(runs / "whole")["adapter_model.safetensors"]
    )


def test_demonstrations_are_imitated_by_all_weights(place, options, qwen3_folder):  # noqa: F811
    shown = ["rollout", "--tasks", "tasks.json", "--agent", "demonstration", "--model-name", str(qwen3_folder)]
    assert place.cuarl(*shown, "--episodes", "4", "--name", "shown").code == 0
    # no task is trained on
    measured_on = options[: options.index("--tasks")] + options[options.index("--eval-tasks") :]
    plain = [word for word in measured_on if word not in ("--reward", "luck:luck")]
    result = place.cuarl(
        *plain,
        "--algorithm",
        "sft",
        "--sft-runs",
        "shown",
        "--name",
        "pupil",
        "--max-steps",
        "10",
        "--learning-rate",
        "1e-2",
        "--no-use-lora",
        "--eval-every",
        "0",
        "--skip-baseline",
    )
    assert result.code == 0, result.err
    nll = [row["sft/nll"] for row in measured(place.folder / "runs" / "pupil") if "sft/nll" in row]
    assert len(nll) == 10
    assert nll[-1] < nll[0] / 2, nll
    kept = place.folder / "runs" / "pupil" / "imitated.txt"
    kept.write_text("".join(kept.read_text().splitlines(keepends=True)[1:]))
    refused = place.cuarl("train", "--resume", "pupil", "--max-steps", "11")
    assert (refused.code, "of 3 episodes 0 are gone, and 1 are new" in refused.err) == (2, True), refused.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "extra"),
    [
        pytest.param((), ["--processes", "2"], id="by cuarl"),
        pytest.param((), ["--processes", "2", "--accelerate", "fsdp2"], id="in shards"),
        pytest.param(
            ("accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--main_process_port", "0", "-m"),
            ["--device", "auto"],
            id="by hand",
        ),
    ],
)
def test_two_processes_equal_one_and_only_the_main_one_speaks(place, options, launcher, extra):
    small = [*options, "--max-steps", "2", "--skip-baseline", "--eval-episodes", "2", "--adam-eps", "1e-3"]
    assert place.cuarl(*small, "--name", "one").code == 0
    code, err = finished(started(place.folder, [*small, "--name", "two", *extra], launcher))
    assert code == 0, err
    assert sum(line.startswith("step ") for line in err.splitlines()) == 2
    one, two = (
        load_file(place.folder / "runs" / n / "checkpoints" / "step-000002" / "adapter_model.safetensors")
        for n in ("one", "two")
    )
    assert all(torch.allclose(one[name], two[name], atol=1e-5) for name in one)
    with place.store() as store:
        ids = {r.name: r.id for r in store.runs()}
        counts = [len(store.episodes(run=ids[name], purpose="train")) for name in ("one", "two")]
    assert counts == [12, 12]


def test_a_dry_run_prints_the_plan_and_writes_nothing(place, options):
    result = place.cuarl(*options, "--dry-run")
    assert result.code == 0
    assert "4 steps of 2 groups of 3: 24 episodes of at most 3 turns" in result.err
    assert not (place.folder / "runs").exists()


@pytest.mark.parametrize(
    ("extra", "code", "says"),
    [
        pytest.param(["--top-p", "0.9"], 2, "top_p", id="a truncated distribution"),
        pytest.param(["--env", "sims"], 2, 'did you mean "sim"', id="unknown environment"),
        pytest.param(["--model-name", "nowhere"], 2, 'no model "nowhere"', id="unknown model"),
        pytest.param(["--processes", "2", "--accelerate", "dpp"], 2, 'did you mean "ddp"', id="unknown launch preset"),
        pytest.param(["--load-checkpoint-path", "nowhere"], 1, "no checkpoint", id="unknown checkpoint"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(place, options, extra, code, says):
    result = place.cuarl(*options, *extra)
    assert (result.code, says in result.err) == (code, True), result.err
    assert not (place.folder / "runs").exists()


def test_a_finished_run_goes_on_with_more_steps_from_its_checkpoint(place, options):
    small = [*options, "--max-steps", "2", "--skip-baseline", "--eval-episodes", "2"]
    assert place.cuarl(*small, "--name", "mine").code == 0
    assert place.cuarl("train", "--resume", "mine", "--group-size", "4").code == 2
    result = place.cuarl("train", "--resume", "mine", "--max-steps", "3")
    assert result.code == 0, result.err
    assert [row["step"] for row in measured(place.folder / "runs" / "mine")] == [1, 2, 3]


def loses_links(runs):
    (runs / "mine" / "checkpoints" / "latest").unlink()
    (runs / "mine" / "logs" / "latest").unlink()


def follows_links(runs):
    shutil.copytree(runs / "mine", runs / "copy", symlinks=False)
    shutil.rmtree(runs / "mine")
    (runs / "copy").rename(runs / "mine")


@pytest.mark.parametrize("copied", [loses_links, follows_links])
def test_b16_a_run_that_was_copied_without_its_links_goes_on_where_it_was(place, options, copied):
    small = [*options, "--save-every", "1", "--skip-baseline", "--eval-every", "0", "--eval-episodes", "1"]
    assert place.cuarl(*small, "--name", "mine", "--max-steps", "3").code == 0
    runs = place.folder / "runs"
    before = [checkpoint(runs / "mine", step) for step in (1, 2, 3)]
    copied(runs)
    result = place.cuarl("train", "--resume", "mine", "--max-steps", "4")
    assert result.code == 0, result.err
    assert [row["step"] for row in measured(runs / "mine")] == [1, 2, 3, 4]
    assert sum(line.startswith("step ") for line in result.err.splitlines()) == 1
    assert [checkpoint(runs / "mine", step) for step in (1, 2, 3)] == before


def test_b16_a_run_whose_checkpoints_are_gone_is_refused_and_left_as_it_is(place, options):
    small = [*options, "--skip-baseline", "--eval-episodes", "1", "--eval-every", "0"]
    assert place.cuarl(*small, "--name", "mine", "--max-steps", "2").code == 0
    run = place.folder / "runs" / "mine"
    shutil.rmtree(run / "checkpoints")
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    result = place.cuarl("train", "--resume", "mine", "--max-steps", "4")
    assert (result.code, "has done 2 steps, and none of its checkpoints is here" in result.err) == (1, True), result.err
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


SHORT = ("--skip-baseline", "--eval-every", "0", "--eval-episodes", "1", "--save-every", "1")


def edited(folder, **fields):
    """Change the first task of the file."""
    first, *others = json.loads((folder / "tasks.json").read_text())
    (folder / "tasks.json").write_text(json.dumps([{**first, **fields}, *others]))


CHANGES = [
    (lambda f: edited(f, description="Another goal"), 'description was "Do it", is "Another goal"'),
    (lambda f: edited(f, preset={"display.dark_theme": True}), "preset was the default"),
    (lambda f: edited(f, checks=[{"path": "network.wifi.enabled", "value": True}]), "checks was"),
    (lambda f: edited(f, id="wifi_away"), "training task wifi_off is gone"),
    (lambda f: (f / "luck.py").write_text(LUCK.replace("% 3", "% 5")), "module luck: its code differs"),
]
"""What may change under a run, and what is said of it."""


def test_a_resume_under_other_tasks_or_rewards_is_refused_with_what_changed(place, options):
    assert place.cuarl(*options, *SHORT, "--name", "mine", "--max-steps", "1").code == 0
    run = place.folder / "runs" / "mine"
    files = {file: file.read_text() for file in (place.folder / "tasks.json", place.folder / "luck.py")}
    before = (run / "manifest.json").read_text()
    for change, says in CHANGES:
        for file, text in files.items():
            file.write_text(text)
        change(place.folder)
        refused = place.cuarl("train", "--resume", "mine", "--max-steps", "2")
        assert (refused.code, says in refused.err) == (2, True), refused.err
        assert "fix: put them back, or resume with them as they are now: --accept-changes" in refused.err
        assert (run / "manifest.json").read_text() == before
    edited(place.folder, preset={"display.dark_theme": True})
    accepted = place.cuarl("train", "--resume", "mine", "--max-steps", "2", "--accept-changes")
    assert (accepted.code, "preset was" in accepted.err, "luck" in accepted.err) == (0, True, True), accepted.err
    after = json.loads((run / "manifest.json").read_text())
    digests = [attempt["tasks_digest"] for attempt in after["attempts"]]
    assert digests == [json.loads(before)["tasks_digest"], after["tasks_digest"]] and len(set(digests)) == 2
    assert place.cuarl("train", "--resume", "mine", "--max-steps", "2").code == 0  # the accepted ones count now


def test_a_resume_under_the_same_tasks_from_another_file_layout_goes_on(place, options):
    assert place.cuarl(*options, *SHORT, "--name", "mine", "--max-steps", "1").code == 0
    file = place.folder / "tasks.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=8))
    (place.folder / "luck.py").write_text(f"# a comment\n{LUCK}")
    sys.modules.pop("luck", None)
    assert place.cuarl("train", "--resume", "mine", "--max-steps", "2").code == 0


def test_accepting_changes_needs_a_run_to_resume(place, options):
    result = place.cuarl(*options, "--accept-changes")
    assert (result.code, "--accept-changes goes with --resume" in result.err) == (2, True), result.err


def test_only_a_training_run_is_resumed(place):
    assert place.cuarl("rollout", "--tasks", "tasks.json", "--agent", "nothing", "--name", "seen").code == 0
    assert place.cuarl("eval", "nothing", "--tasks", "tasks.json", "--episodes", "1", "--name", "told").code == 0
    for name, kind in (("seen", "rollout"), ("told", "eval")):
        result = place.cuarl("train", "--resume", name)
        assert (result.code, f"is a run of cuarl {kind}, and only training" in result.err) == (2, True), result.err


def test_training_goes_on_from_a_checkpoint_of_another_run(place, options):
    small = [*options, "--max-steps", "1", "--skip-baseline", "--eval-episodes", "2"]
    assert place.cuarl(*small, "--name", "first").code == 0
    start = "runs/first/checkpoints/step-000001"
    refused = place.cuarl(*small, "--load-checkpoint-path", start, "--lora-rank", "2")
    assert (refused.code, "lora_rank has no effect" in refused.err) == (2, True), refused.err
    result = place.cuarl(*small, "--load-checkpoint-path", start, "--name", "second")
    assert result.code == 0, result.err


def test_an_adapter_on_a_fully_trained_checkpoint_is_loaded_on_that(place, options):
    small = [*options, "--max-steps", "1", "--skip-baseline", "--eval-episodes", "2"]
    assert place.cuarl(*small, "--no-use-lora", "--name", "whole").code == 0
    start = "runs/whole/checkpoints/step-000001"
    for name, given in (("adapter", start), ("further", "runs/adapter/checkpoints/step-000001")):
        result = place.cuarl(*small, "--load-checkpoint-path", given, "--name", name)
        assert result.code == 0, result.err
        found = target_of(place.folder / f"runs/{name}/checkpoints/step-000001")
        assert (found.model, found.adapter is not None) == (start, True)


@pytest.mark.parametrize("family", ["idefics3", "qwen2_5_vl", "qwen3_vl_moe"])
def test_a_model_of_any_family_takes_a_training_step(place, options, tmp_path, family, request):
    model = tmp_path / "model"
    model.mkdir()
    if family == "qwen2_5_vl":
        model = request.getfixturevalue("qwen25_folder")
    elif family == "qwen3_vl_moe":
        save_qwen(family, model, request.getfixturevalue("tokenizer"))
    else:
        save_family(family, model)
    changed = {"--model-name": str(model), "--max-steps": "1", "--max-turns": "2"}
    args = [changed.get(before, arg) for before, arg in zip(["", *options], options, strict=False)]
    result = place.cuarl(
        *args, "--seed", "1", "--name", "run", "--renderer-name", "json", "--skip-baseline", "--eval-episodes", "1"
    )
    assert result.code == 0, result.err
    metrics = lines(place.folder / "runs" / "run" / "metrics.jsonl")[-1]
    assert metrics.get("optim/grad_norm", 0) > 0 and metrics["policy/logprob_diff_mean"] < 1e-4, metrics
    base = AutoModelForImageTextToText.from_pretrained(model)
    adapted = PeftModel.from_pretrained(base, place.folder / "runs" / "run" / "checkpoints" / "latest")
    moved = [p.abs().max() for n, p in adapted.named_parameters() if "lora_B" in n]
    assert moved and min(moved) > 0


@pytest.mark.slow
def test_a_checkpoint_is_exported_and_merged_with_its_figures(place, options, whole, qwen3_folder):  # noqa: F811
    runs = ["--runs-dir", str(whole.parent)]
    result = place.cuarl("model", "export", "run@4", "--out", "mine", *runs)
    assert result.code == 0, result.err
    card = (place.folder / "mine" / "README.md").read_text()
    assert f"base_model: {qwen3_folder}" in card and "# run, step 4" in card
    assert re.search(r"\| .* \| [\d.]+ % \| [\d.]+ to [\d.]+ % \| 4 \| [\d.]+ % \|", card), "after and before, with n"
    assert f"vllm serve {qwen3_folder} --enable-lora --max-lora-rank 16 --lora-modules run=" in card
    base = AutoModelForImageTextToText.from_pretrained(qwen3_folder)
    adapted = PeftModel.from_pretrained(base, place.folder / "mine").eval()
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    with torch.no_grad():
        expected = adapted(input_ids=ids).logits
        assert not torch.allclose(
            adapted.get_base_model()(input_ids=ids).logits, base_logits(qwen3_folder, ids), atol=1e-3
        )
    for dtype, atol in (("float32", 1e-4), ("bfloat16", 0.1)):
        done = place.cuarl("model", "merge", "mine", "--out", dtype, "--dtype", dtype, "--json", *runs)
        assert done.code == 0, done.err
        assert done.lines[0]["largest"] < done.lines[0]["tolerance"] and done.lines[0]["tokens"] > 10
        merged = AutoModelForImageTextToText.from_pretrained(place.folder / dtype, dtype="auto")
        assert str(merged.dtype) == f"torch.{dtype}"
        with torch.no_grad():
            assert torch.allclose(merged.float()(input_ids=ids).logits, expected, atol=atol)
        assert f"written in {dtype}" in (place.folder / dtype / "README.md").read_text()
    again = place.cuarl("model", "merge", "mine", "--out", "float32", *runs)
    assert again.code == 2 and "is there already" in again.err
    nothing = place.cuarl("model", "merge", str(place.folder / "float32"), "--out", "more", *runs)
    assert nothing.code == 2 and "no adapter to merge" in nothing.err
    assert not (place.folder / "more").exists()


def base_logits(folder, ids):
    return AutoModelForImageTextToText.from_pretrained(folder)(input_ids=ids).logits
