"""Completion as a shell asks for it: it gives the words, and what could follow is printed."""

import os
import subprocess
import sys

import pytest

from cuarl.cli.app import run
from tests.integration.rollout_place import bare

pytestmark = pytest.mark.integration


def asked(line):
    """The variables that bash's completion sets."""
    return {"_CUARL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "runs" / "alpha").mkdir(parents=True)
    (tmp_path / "runs" / "alpha" / "manifest.json").write_text("{}")
    (tmp_path / "runs" / "other").mkdir()
    return tmp_path


@pytest.fixture
def complete(folder, monkeypatch, capfd):
    """Asks within this process."""
    bare(monkeypatch, folder)

    def complete(line):
        for name, value in asked(line).items():
            monkeypatch.setenv(name, value)
        run([])
        return capfd.readouterr().out.split()

    return complete


def in_a_process(folder, *words, **variables):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(words, capture_output=True, text=True, env={**kept, **variables}, cwd=folder, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


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


def test_the_process_that_a_shell_starts_completes(folder):
    assert in_a_process(folder, sys.executable, "-m", "cuarl", **asked("cuarl monitor tail a")).split() == ["alpha"]


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from cuarl.cli.app import main; main()"


def test_episodes_are_completed_and_were_played_without_torch(complete, folder):
    """Loading torch takes longer than such a rollout itself."""
    words = ("rollout", "--tasks", "train_02_enable_wifi", "--agent", "nothing", "--json")
    in_a_process(folder, sys.executable, "-c", WITHOUT_TORCH, *words)
    [first, latest] = complete("cuarl rollout show ")
    assert latest == "latest"
    assert complete(f"cuarl rollout show {first[:6]}") == [first]
