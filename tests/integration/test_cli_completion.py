"""Completion as a shell asks for it: the process gets the words and prints what could follow."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration


@pytest.fixture
def complete(tmp_path):
    (tmp_path / "runs" / "alpha").mkdir(parents=True)
    (tmp_path / "runs" / "alpha" / "manifest.json").write_text("{}")
    (tmp_path / "runs" / "other").mkdir()

    def complete(line):
        environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ},
            "_CUARL_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        }
        command = [sys.executable, "-m", "cuarl"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60)
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cuarl mon", ["monitor"]),
        ("cuarl config sh", ["show"]),
        ("cuarl monitor tail a", ["alpha"]),
        ("cuarl config show ti", ["tiny"]),
        ("cuarl monitor tail --me", ["--metric"]),
        ("cuarl train --resume al", ["alpha"]),
        ("cuarl train --env gym", ["gym", "gymnasium"]),
        ("cuarl train --algorithm rl", ["rloo"]),
        ("cuarl train --preset qwen3-vl-f", ["qwen3-vl-full"]),
        ("cuarl train --tasks settings,phone_t", ["settings,phone_train"]),
        ("cuarl rollout --tasks train_02_en", ["train_02_enable_wifi"]),
        ("cuarl train -s groups_", ["groups_per_batch="]),
        ("cuarl train -s algorithm.credit=s", ["algorithm.credit=screen"]),
        ("cuarl train -s use_lora=", ["use_lora=true", "use_lora=false"]),
        ("cuarl eval ", ["alpha", "latest", "base", "oracle", "random", "nothing"]),
        ("cuarl rollout verify al", ["alpha"]),
        ("cuarl rollout show lat", ["latest"]),
    ],
)
def test_words_are_completed(complete, line, words):
    assert complete(line) == words


def test_episodes_are_completed(complete, tmp_path):
    command = [
        sys.executable,
        "-m",
        "cuarl",
        "rollout",
        "--tasks",
        "train_02_enable_wifi",
        "--agent",
        "nothing",
        "--json",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    [first, latest] = complete("cuarl rollout show ")
    assert latest == "latest"
    assert complete(f"cuarl rollout show {first[:6]}") == [first]
