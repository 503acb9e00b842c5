"""``cuarl eval --grounding``: pictures of the simulated phone, and answers that are known."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from cuarl.env.sim.devices import make_sim
from cuarl.evaluate.suite import read_results
from cuarl.local.threads import served
from cuarl.tasks.suites import load_suite, shipped_folder
from tests.fakes.chat_server import ChatServer
from tests.integration.rollout_place import Place, bare

pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytestmark = pytest.mark.integration

SAID = '<tool_call>\n{{"name": "mobile_use", "arguments": {{"action": "click", "coordinate": [{}, {}]}}}}\n</tool_call>'


async def pictures(folder, number):
    """Pairs of a screen of the simulated phone and what its oracle taps first."""
    pairs = []
    for task in load_suite(shipped_folder() / "recipe_train").tasks[: 2 * number]:
        env, instance = make_sim("phone", "small"), task.instantiate(1)
        shown = (await env.reset(instance, 1)).screenshot
        action = env.oracle_action()
        box = await env.around(action.x, action.y) if action.kind == "click" else None
        if box is not None and len(pairs) < number:
            name = f"{len(pairs)}.png"
            shown.image.save(folder / name)
            left, top, right, bottom = box
            pair = {"img_filename": name, "bbox": [left, top, right - left, bottom - top], "instruction": instance.goal}
            pairs.append(pair | {"data_type": ("text", "icon")[len(pairs) % 2], "data_source": "android"})
    (folder / "phone.json").write_text(json.dumps(pairs))
    return pairs, (shown.width, shown.height)


def test_known_answers_give_known_hits_by_kind_with_wilsons_intervals(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    place = Place(tmp_path, capsys)
    pairs, (width, height) = asyncio.run(pictures(tmp_path, 8))
    answers = []
    for number, pair in enumerate(pairs):
        x, y, w, h = pair["bbox"]
        # the four texts are hit, of the four icons one; another answer is no action at all
        point = (x + w / 2, y + h / 2) if number % 2 == 0 or number == 1 else (width - 1, height - 1)
        answers.append(SAID.format(round(1000 * point[0] / width), round(1000 * point[1] / height)))
    answers[7] = "I can't see it."
    server = ChatServer(*answers)
    with served(server.app()) as url:
        done = place.cuarl(
            *("eval", f"{url}/v1", "--model-name", "tiny", "--renderer-name", "qwen3-vl", "--max-concurrent-rollouts"),
            *("1", "--grounding", "phone.json", "--no-baselines"),
        )
    assert done.code == 0, done.err
    told = [asked for asked in server.asked if "Say hi." not in str(asked)]
    assert len(told) == len(pairs), "each is asked once"
    found = read_results(next(tmp_path.glob("runs/*/evals/phone-step-000000")))
    assert (found.overall.n, found.overall.success_rate, found.limited) == (8, 5 / 8, "")
    assert set(found.by_about) == {"kind", "source", "size"}
    text, icon = found.by_about["kind"]["text"], found.by_about["kind"]["icon"]
    assert (text.n, text.success_rate, icon.n, icon.success_rate) == (4, 1.0, 4, 0.25)
    # R: prop.test(1, 4, correct = FALSE)$conf.int, prop.test(4, 4, correct = FALSE)$conf.int
    assert (icon.ci_low, icon.ci_high) == pytest.approx((0.0455878, 0.6993582), abs=1e-6)
    assert (text.ci_low, text.ci_high) == pytest.approx((0.5101092, 1.0), abs=1e-6)
    assert re.search(r"kind icon +4 +4 +25\.0 %", done.out + done.err)
    episodes = sorted(place.episodes(), key=lambda e: e.task_id)
    assert [e.success for e in episodes] == [True, True, True, False, True, False, True, False]
    assert episodes[0].goal == pairs[0]["instruction"]
    assert all(len(e.turns) == 1 for e in episodes)


def test_a_file_is_needed_and_filters_of_tasks_are_refused(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    place = Place(tmp_path, capsys)
    asyncio.run(pictures(tmp_path, 3))
    assert "--grounding FILE" in place.cuarl("eval", "oracle", "--env", "grounding").err
    assert "have no category" in place.cuarl("eval", "oracle", "--grounding", "phone.json", "--category", "app").err
    two = place.cuarl("eval", "oracle", "--grounding", "phone.json", "--limit", "2", "--json")
    assert two.lines[-1]["evaluation"]["overall"]["n"] == 2
