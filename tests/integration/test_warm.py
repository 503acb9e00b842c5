"""A command that is forked from a process with everything imported does what a new interpreter does."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests import warm

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("args", [["config", "presets", "--json"], ["config", "show", "-s", "sede=1"]], ids=str)
def test_it_says_and_exits_as_a_new_interpreter_does(tmp_path, args):
    environment = {**os.environ, "CUARL_RUNS_DIR": str(tmp_path / "runs")}
    new = subprocess.run(
        [sys.executable, "-m", "cuarl", *args], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    forked = warm.run(*args, cwd=tmp_path, env=environment)
    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)


def test_it_has_its_own_folder_and_variables_and_may_be_killed(tmp_path):
    from cuarl.config.load import resolve
    from cuarl.run import Run

    with Run.create(tmp_path / "here", resolve(), name="alpha"):
        environment = {"PATH": os.environ["PATH"], "CUARL_RUNS_DIR": "here"}
        with warm.Command("monitor", "tail", cwd=tmp_path, env=environment, stderr=warm.PIPE) as process:
            assert "alpha (running)" in process.stderr.readline()
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.01)
            process.kill()
            assert process.wait(60) == -signal.SIGKILL
    assert json.loads(warm.run("runs", "list", "--json", cwd=tmp_path, env={"CUARL_RUNS_DIR": "none"}).stdout) == []
