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
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "_CUARL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")),
        }  # fmt: skip
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
    ],
)
def test_words_are_completed(complete, line, words):
    assert complete(line) == words
