"""The example's help desk: every task is proven in Chromium, and no goal that is held out is trained on."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from cuarl.tasks.source import load
from tests.integration.browser.conftest import why_not
from tests.integration.rollout_place import Place, bare
from tests.integration.test_documented_commands import ROOT

pytestmark = pytest.mark.integration
EXAMPLE = ROOT / "examples/helpdesk"
FILES = ("tasks.yaml", "held-out.yaml", "wider.yaml")


@pytest.fixture
def desk() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), runpy.run_path(str(EXAMPLE / "helpdesk.py"))["HelpDesk"])
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def goals(file: str) -> set[str]:
    found = set()
    for task in load([str(EXAMPLE / file)], role=None).tasks:
        names = list(task.params)
        for values in itertools.product(*task.params.values()):
            found.add(task.description.format(**dict(zip(names, values, strict=True))))
    return found


def test_what_is_held_out_is_five_of_twelve_tasks_and_no_goal_of_training() -> None:
    trained, held_out = (load([str(EXAMPLE / file)], role=None).tasks for file in FILES[:2])
    assert (len(trained), len(held_out)) == (7, 5)
    assert goals("tasks.yaml").isdisjoint(goals("held-out.yaml"))
    words = {word.strip(".") for goal in goals("tasks.yaml") for word in goal.split()}
    assert {word.strip(".") for goal in goals("held-out.yaml") for word in goal.split()} <= words


def test_the_wider_tickets_are_in_no_other_file() -> None:
    titles = [set(task.params["ticket"]) for task in load([str(EXAMPLE / "wider.yaml")], role=None).tasks]
    assert all(one == titles[0] and len(one) == 64 for one in titles)
    for file in FILES[:2]:
        assert titles[0].isdisjoint(word.strip(".") for goal in goals(file) for word in goal.split())


def test_every_task_is_proven(
    desk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if reason := why_not():
        pytest.skip(reason)
    bare(monkeypatch, tmp_path)
    place = Place(tmp_path, capsys)
    for name in FILES:
        text = (EXAMPLE / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("http://127.0.0.1:8766", desk), encoding="utf-8")
    done = place.cuarl("tasks", "validate", *FILES, "--prove", "--seeds", "1", "--set", "env.viewport=320x320")
    assert done.code == 0, done.out + done.err
    assert "18 tasks without errors, 18 of them proven at 1 seed" in done.out + done.err


def test_sessions_are_apart_and_nobody_gets_in_without_the_password(desk: str) -> None:
    with httpx.Client(base_url=desk, trust_env=False) as client:
        for session, seed in (("a", 1), ("b", 2)):
            client.post("/reset", params={"session": session}, json={"seed": seed})
            client.post("/set", params={"session": session}, json={"show": "Mail", "hide": "Phone"})
        assert "<h1>Sign in" in client.get("/", params={"session": "a"}).text
        for word, title in (("wrong", "Sign in"), ("sesame", "Tickets")):
            shown = client.get("/enter", params={"session": "a", "name": "Ann", "password": word})
            assert f"<h1>{title}" in shown.text
        client.get("/delete", params={"session": "a", "ticket": "Mail", "sure": "yes"})
        told = {name: client.get("/state", params={"session": name}).json() for name in "ab"}
    titles = {name: [ticket["title"] for ticket in state["tickets"]] for name, state in told.items()}
    assert (told["a"]["signed_in"], told["b"]["signed_in"]) == ("Ann", None)
    assert "Mail" not in titles["a"] and "Mail" in titles["b"] and "Phone" not in titles["b"]
