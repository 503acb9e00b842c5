"""The examples do what their comments say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.integration
@pytest.mark.parametrize(
    "command",
    [
        ("train", "-c", "settings-easy.yaml", "--dry-run"),
        ("tasks", "validate", "my-tasks.yaml", "--seeds", "2"),
    ],
    ids=["experiment", "tasks"],
)
def test_example_runs(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", "cuarl", *command], cwd=EXAMPLES, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
