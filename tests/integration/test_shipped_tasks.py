"""Every shipped task is solvable and starts unsolved, at twenty seeds, however Python salts its hashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]

SEEDS = 20


@pytest.mark.parametrize("salt", ["0", "1"])
def test_every_task_is_proven_whatever_the_hash_seed(salt: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": salt, "CUARL_TASKS_DIR": ""}
    command = [sys.executable, "-m", "cuarl", "tasks", "validate", "--seeds", str(SEEDS), "--json"]
    result = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=1700
    )
    report = json.loads(result.stdout)
    assert [proof for proof in report["proofs"] if proof["failed"]] == []
    assert report["findings"] == []
    assert (result.returncode, len(report["proofs"])) == (0, report["tasks"])
