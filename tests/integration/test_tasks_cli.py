"""``cuarl tasks`` as a process: what it loads, and its output in pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

LONG_ID = "a-task-whose-id-is-longer-than-thirty-six-characters"
HEAVY = ("torch", "transformers", "sqlalchemy", "alembic")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "suites" / "toy-long"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text("role: train\n")
    tasks = [{"id": f"{LONG_ID}-{i}", "goal": f"Goal {i}", "checks": [{"path": "x", "value": i}]} for i in range(300)]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "CUARL_TASKS_DIR": str(folder.parent), "PYTHONPATH": str(Path(__file__).parents[2])}


def cuarl(
    environment: dict[str, str], tmp_path: Path, *args: str, stdin: int | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cuarl", "tasks", *args]
    return subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, stdin=stdin
    )


def test_a_listing_in_a_narrow_pipe_has_whole_ids_and_no_escape_codes(
    environment: dict[str, str], tmp_path: Path
) -> None:
    result = cuarl(environment, tmp_path, "list", "--suite", "toy-long", "--limit", "3")
    assert (result.returncode, result.stdout.count(LONG_ID)) == (0, 3)
    assert "\x1b" not in result.stdout + result.stderr


def test_a_listing_loads_nothing_heavy(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import sys; from cuarl.cli.app import run; code = run(['tasks', 'list', '--ids']); "
        f"sys.exit(code or sum(name in sys.modules for name in {HEAVY}))"
    )
    result = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert LONG_ID in result.stdout


def test_a_reader_that_goes_away_early_leaves_no_traceback(environment: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cuarl", "tasks", "list", "--suite", "toy-long", "--json"]
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    process.wait(timeout=60)


def test_no_ids_on_standard_input_is_an_error_and_nothing_waits(environment: dict[str, str], tmp_path: Path) -> None:
    result = cuarl(environment, tmp_path, "filter", "--tasks", "-", "--json", stdin=subprocess.DEVNULL)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: standard input held no ids\n")


def test_a_wrong_task_file_is_exit_code_two_with_its_line(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("- goal: x\n- goal: y\n  max_step: 3\n")
    result = cuarl(environment, tmp_path, "validate", "mine.yaml")
    assert result.returncode == 2
    assert 'error: unknown field "max_step" (did you mean "max_steps"?)\n  at: mine.yaml, line 3\n' in result.stderr
