"""``cuarl local``: a stand-in prints the variables that lead to it, works by them, and ends in an orderly way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

pytestmark = pytest.mark.integration


@contextmanager
def local(*words):
    """The variables that a stand-in prints."""
    command = [sys.executable, "-m", "cuarl", "local", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("export "), line + process.stderr.read()
            yield dict(re.findall(r"([A-Z_]+)=(\S+)", line))
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in said, said


def cuarl(*words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "cuarl", *words], capture_output=True, text=True, env={**os.environ, **variables}
    )


def test_an_episode_is_played_in_a_box_by_the_printed_variables(tmp_path):
    pytest.importorskip("uvicorn", reason="the extra web is not installed")
    with local("gbox") as variables:
        done = cuarl(
            "rollout",
            "--env",
            "gbox",
            "--agent",
            "random",
            "--tasks",
            "settings",
            "--limit",
            "1",
            "--max-turns",
            "2",
            CUARL_RUNS_DIR=str(tmp_path),
            DATABASE_URL=f"sqlite:///{tmp_path}/x.db",
            **variables,
        )
        assert done.returncode == 0, done.stderr
        counts = httpx.get(variables["GBOX_BASE_URL"].removesuffix("/api/v1") + "/fake").json()
        assert (counts["made"], counts["live"]) == (1, 0) and counts["actions"] >= 1


@pytest.mark.parametrize("name", ["gym", "mini-agent", "kubernetes", "adb", "tinker"])
def test_each_says_where_it_is(name):
    if name != "adb":
        pytest.importorskip("uvicorn", reason="the extra web is not installed")
    if name == "tinker":
        pytest.importorskip("tinker", reason="the extra tinker is not installed")
    with local(name) as variables:
        assert any(value.startswith("http://127.0.0.1:") or value.isdigit() for value in variables.values())


def test_a_wrong_name_and_a_taken_port_are_one_line_each():
    wrong = cuarl("local", "gbux")
    assert wrong.returncode == 2 and "gbox" in wrong.stderr
    pytest.importorskip("uvicorn", reason="the extra web is not installed")
    with local("gbox") as variables:
        taken = cuarl("local", "gbox", "--port", variables["GBOX_BASE_URL"].split(":")[2].split("/")[0])
    assert taken.returncode == 4 and "can't listen there" in taken.stderr
