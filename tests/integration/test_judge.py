"""A model as judge: of goals without checks, and held against checks; its answers are a server's of this test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the test's server needs the extra web")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from cuarl.local.threads import served
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration


class Judge:
    """Believes whoever has acted at all; ``broken`` answers come first."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.broken = 0

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self._chat, methods=["POST"])])

    async def _chat(self, request: Request) -> JSONResponse:
        body = await request.json()
        self.asked.append(body)
        question = body["messages"][1]["content"][0]["text"]
        said = json.dumps({"reason": "It {acted}.", "success": "click" in question or "swipe" in question})
        self.broken -= 1
        text = "I think so." if self.broken >= 0 else f"Let me see. {{}} {said.replace('{acted}', 'did')}"
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return JSONResponse({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage})


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], judge: Judge
) -> Iterator[Place]:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("JUDGE_API_KEY", "key-of-the-judge")
    made = Place(tmp_path, capsys)
    task = {"id": "nice", "description": "Make it look nice", "category": "settings", "max_steps": 3}
    (tmp_path / "open.json").write_text(json.dumps([task]))
    with served(judge.app()) as url:
        made.named = ("--judge-base-url", f"{url}/v1", "--judge-model", "wise")  # type: ignore[attr-defined]
        yield made


def test_a_goal_without_checks_is_judged_by_a_model(place: Place, judge: Judge) -> None:
    asking = ("--reward", "judge", *place.named, "--judge-screens", "2")  # type: ignore[attr-defined]
    for agent, name in (("random", "r"), ("nothing", "n")):
        options = ("--tasks", "open.json", "--agent", agent, "--name", name, "--seed", "3")
        done = place.cuarl("rollout", *options, *asking, "--json")
        assert done.code == 0, done.err
    acted, idle = sorted(place.episodes(), key=lambda one: one.agent, reverse=True)  # random, nothing
    assert (acted.reward, idle.reward) == (1.0, 0.0)
    assert acted.verdict is not None and acted.verdict.success and acted.verdict.checks[0].actual == "It did."
    said = acted.info["judge"]
    assert (said["model"], said["tokens_in"], said["tokens_out"]) == ("wise", 100, 10)
    system, question = judge.asked[0]["messages"]
    assert "JSON" in system["content"] and "Make it look nice" in question["content"][0]["text"]
    screens = {one.digest for one in (*(turn.screenshot for turn in acted.turns), acted.final_screenshot) if one}
    pictures = [part for part in question["content"] if part["type"] == "image_url"]
    assert len(pictures) == min(2, len(screens))


def test_agreement_with_checks_is_counted_once(place: Place, judge: Judge) -> None:
    for agent, name in (("oracle", "o"), ("nothing", "n")):
        assert place.cuarl("rollout", "--tasks", "tasks.json", "--agent", agent, "--name", name).code == 0
    judge.broken = 1  # asked again
    found = json.loads(place.cuarl("rollout", "judge", "o", *place.named, "--json").out)  # type: ignore[attr-defined]
    assert (found["done_done"], found["done_not"], found["not_done"], found["not_not"]) == (2, 0, 0, 0)
    assert (found["share"], found["kappa"], found["tokens_in"], found["unanswered"]) == (1.0, 1.0, 300, 0)
    asked = len(judge.asked)
    again = json.loads(place.cuarl("rollout", "judge", "o", *place.named, "--json").out)  # type: ignore[attr-defined]
    assert (len(judge.asked), again["done_done"], again["tokens_in"]) == (asked, 2, 0)
    told = place.cuarl("rollout", "judge", "n", *place.named)  # type: ignore[attr-defined]
    assert "wise agrees in 100.0 % of 2 episodes (95 % interval 34.2–100.0 %), kappa 1.00" in told.err
    judge.broken = 100
    (place.folder / "runs" / "n" / "judge.jsonl").unlink()
    broken = place.cuarl("rollout", "judge", "n", *place.named)  # type: ignore[attr-defined]
    assert broken.code != 0 and "did not answer in the form that it was asked for" in broken.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--reward", "judge"), "reward judge needs judge_base_url and judge_model"),
        (("--judge-model", "wise"), "judge_model"),
    ],
    ids=["nobody", "unasked"],
)
def test_a_judge_is_named_and_asked(place: Place, options: tuple[str, ...], message: str) -> None:
    done = place.cuarl("rollout", "--tasks", "open.json", "--agent", "nothing", *options)
    assert done.code == 2 and message in done.err
