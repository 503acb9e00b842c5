"""``cuarl local``: a stand-in prints the variables that lead to it, works by them, and ends in an orderly way."""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager

import httpx
import pytest

from tests import warm
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration


@contextmanager
def local(*words):
    """The variables that a stand-in prints."""
    with warm.Command("local", *words, "--port", "0", stdout=warm.PIPE, stderr=warm.PIPE) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("export "), line + process.stderr.read()
            yield dict(re.findall(r"([A-Z_]+)=(\S+)", line))
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in said, said


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


def test_an_episode_is_played_in_a_box_by_the_printed_variables(place, monkeypatch):
    pytest.importorskip("uvicorn", reason="the extra web is not installed")
    asked = ["--agent", "random", "--tasks", "settings", "--limit", "1", "--max-turns", "2"]
    with local("gbox") as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        done = place.cuarl("rollout", "--env", "gbox", *asked)
        assert done.code == 0, done.err
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


def test_a_wrong_name_and_a_taken_port_are_one_line_each(place):
    wrong = place.cuarl("local", "gbux")
    assert wrong.code == 2 and "gbox" in wrong.err
    pytest.importorskip("uvicorn", reason="the extra web is not installed")
    with local("gbox") as variables:
        taken = place.cuarl("local", "gbox", "--port", variables["GBOX_BASE_URL"].split(":")[2].split("/")[0])
    assert taken.code == 4 and "can't listen there" in taken.err
