"""examples/miniwob_learns.sh runs through, at a size at which nothing is learnt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[3]
SMALL = f"""#!/bin/sh
# cuarl, at a small size
case "$1" in
rollout) set -- "$@" --tasks miniwob.click-test --episodes 2 ;;
train) set -- "$@" -s eval_tasks=miniwob.click-test -s eval_episodes=2 -s max_steps=1 -s groups_per_batch=1
       case "$*" in *miniwob-rl*) set -- "$@" -s tasks=miniwob.click-test ;; esac ;;
esac
exec "{sys.executable}" -m cuarl "$@"
"""


def test_script_runs_from_the_base_to_the_comparison(tmp_path):
    program = tmp_path / "bin" / "cuarl"
    program.parent.mkdir()
    program.write_text(SMALL, encoding="utf-8")
    program.chmod(0o755)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}
    shell = shutil.which("sh")
    assert shell
    done = subprocess.run(
        [shell, str(ROOT / "examples" / "miniwob_learns.sh")],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("miniwob.click-test ")]
    assert [row[1] for row in rows] == ["2", "2"], "one row a comparison"
    assert "2 instances of 1 tasks" in done.stderr
