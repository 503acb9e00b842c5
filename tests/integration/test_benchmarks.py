"""The benchmarks run with the code as it is: those for GPUs at tiny size, the long ones as far as their plan."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.algorithms import BASE, Experiment, Job, Result, tables
from benchmarks.scaling import apart
from cuarl.store.records import EpisodeSummary
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
EQUAL = Experiment(
    tasks=["settings_train"],
    measured=["settings_eval"],
    difficulty=["easy"],
    steps=2,
    groups=2,
    group_size=4,
    eval_episodes=6,
    max_turns=4,
    device="cpu",
    extra=[],
)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tiny-Qwen3-VL", "tiny-Qwen2.5-VL"])
def test_real_sizes_at_tiny_size(model):
    command = [sys.executable, "benchmarks/real_sizes.py", "--models", model, "--answer-tokens", "4", "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["faults"], found["pictures_max"]) == ([], 4)
    assert found["reload_logits_diff"] == 0 < found["adapter_logits_diff"]


@pytest.mark.parametrize("algorithm", ["grpo", "dapo", "reinforce++", "rejection"])
def test_the_planned_runs_of_algorithms_are_possible(tmp_path, monkeypatch, capsys, algorithm):
    bare(monkeypatch, tmp_path)
    (command,) = Job(algorithm, 0, tmp_path).commands(EQUAL)
    result = Place(tmp_path, capsys).cuarl(*command, "--dry-run")
    assert result.code == 0, result.err


def test_demonstrations_are_as_many_as_episodes(tmp_path):
    collect, train = Job("sft", 1, tmp_path).commands(EQUAL)
    assert collect[collect.index("--episodes") + 1] == str(EQUAL.episodes) == "16"
    assert train[train.index("--sft-runs") + 1] == collect[collect.index("--name") + 1]


def episodes(*successes):
    return [
        EpisodeSummary(
            episode_id=str(i), task_id=f"t{i % 4}", category="ab"[i % 2], seed=i, success=s, status="completed"
        )
        for i, s in enumerate(successes)
    ]


def test_the_table_pairs_an_algorithm_with_the_base_on_the_same_instances():
    base = {0: Result(episodes(*[False] * 16), 0)}
    better = {0: Result(episodes(*[i % 2 == 0 for i in range(16)]), 64)}
    lines = list(tables({BASE: base, "grpo": better}))
    assert lines[2].startswith("| base | 0 | 0.0 % | 0.0–")
    assert lines[3].startswith("| grpo | 64 | 50.0 % |")
    assert "| 50 | +50.0 |" in lines[3]
    a, b = lines[-3].split(" | ")[-2:]
    assert a.endswith("*")
    assert not b.endswith("* |")


def test_two_gpus_may_differ_by_rounding_alone():
    alone = {"updates": [{"policy/loss": 0.1, "policy/entropy": 8.0, "optim/grad_norm": 0.25}]}
    assert apart(alone, {"updates": [{"policy/loss": 0.101, "policy/entropy": 8.05, "optim/grad_norm": 0.255}]}) == []
    other = apart(alone, {"updates": [{"policy/loss": 0.12, "policy/entropy": 8.0, "optim/grad_norm": 0.30}]})
    assert [text.partition(" of")[0] for text in other] == ["policy/loss", "optim/grad_norm"]
