"""What the contest's two sides have in common, and the page that is made of its results."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks.peers.answers import Answers
from benchmarks.peers.model import CALL, make_tokenizer
from benchmarks.peers.phone import APPS, Phone
from benchmarks.peers.results import differences, read
from benchmarks.peers.table import PAGE, RESULTS, page, pairs
from benchmarks.peers.work import LETTERS, Work, parse_cell


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer("tiny")


def result(side="cuarl", run="r1", *, seconds=2.0, **work):
    found = {
        "run": run, "side": side, "cell": "", "commit": "abc", "hardware": "2 cores", "versions": {"torch": "2"},
        "load": 1.0,
        "work": Work(**{"turns": 3, "width": 192, "height": 320} | work).task, "step_s": seconds, "step_min_s": 1.0,
        "step_max_s": 3.0, "rollout_s": seconds / 2, "update_s": seconds / 2, "first_step_s": seconds, "rss_gib": 1.5,
        "rollout_gib": 0.0, "update_gib": 0.0, "prompts": "d", "prompt_tokens": [1], "answer_tokens": 2,
        "sequence_tokens": 3, "trained_tokens": 2,
    }  # fmt: skip
    return found | ({"activation_gib": 0.0} if side == "cuarl" else {})


def test_cells():
    assert parse_cell("3:544x1216") == {"turns": 3, "width": 544, "height": 1216, "mixed": False}
    assert parse_cell("3:9x8:mixed:200ms") == {"turns": 3, "width": 9, "height": 8, "mixed": True, "delay_ms": 200}
    for wrong in ("3", "3:9", "3:9x8:fast", "3:9x8:", "x:9x8"):
        with pytest.raises(ValueError, match="is no cell"):
            parse_cell(wrong)
    for cell in ("1:9x8", "3:9x8:mixed:20ms"):
        assert Work(**parse_cell(cell)).cell == cell


def test_a_batch_is_whole_groups_and_passes():
    with pytest.raises(ValueError, match="no multiple"):
        Work(turns=1, width=64, height=64, batch=16, group=5)


def test_mixed_answers_differ_by_attempt_and_by_turn():
    work = Work(turns=3, width=64, height=64, mixed=True)
    lengths = [[work.letters(a, t) for t in range(3)] for a in range(8)]
    assert {min(map(min, lengths)), max(map(max, lengths))} == {0, LETTERS}
    assert len({tuple(of) for of in lengths}) == 8
    assert all(len(set(of)) == 3 for of in lengths)


@pytest.mark.parametrize("mixed", [False, True])
def test_only_calls_can_be_drawn(tokenizer, mixed):
    answers = Answers(Work(turns=2, width=64, height=64, think=2, mixed=mixed), tokenizer)
    allowed = ~answers.forbidden(len(tokenizer), "cpu")
    chance = torch.Generator().manual_seed(0)
    for kind, letters in enumerate(answers.kinds):
        drawn = torch.multinomial(allowed[kind].float(), 1, generator=chance)[:, 0].tolist()
        end = drawn.index(tokenizer.eos_token_id)
        assert end + 1 == letters + 29
        thought, call = tokenizer.decode(drawn[:letters]), tokenizer.decode(drawn[letters:end])
        assert len(thought) == letters == sum(c.islower() for c in thought)
        arguments = json.loads(call.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))["arguments"]
        assert all(100 <= arguments[name] <= 999 for name in "xy")
        assert set(drawn[end:]) == {tokenizer.eos_token_id}


def test_prompts_are_compared_without_what_was_sampled(tokenizer):
    answers = Answers(Work(turns=2, width=64, height=64), tokenizer)

    def blank(said, asked):
        talk = [{"role": r, "content": c} for r, c in (("user", asked), ("assistant", said), ("user", "Step 1"))]
        return answers.blank(tokenizer.encode(tokenizer.apply_chat_template(talk, tokenize=False)))

    first = blank("q" + CALL.format(x=123, y=456), "Step 2")
    assert first == blank("v" + CALL.format(x=987, y=654), "Step 2")
    assert first != blank("v" + CALL.format(x=987, y=654), "Step 3")
    assert first != blank("v" + CALL.format(x=987, y=65), "Step 2")


def test_each_icon_opens_another_app_and_one_of_them_is_asked_for():
    phone, screens, solved = Phone(192, 320), set(), 0
    for i in range(len(APPS)):
        home = phone.start(3, "Maps").tobytes()
        screens.add(phone.tap(167 + 333 * (i % 3), 230 + 220 * (i // 3)).tobytes())
        solved += phone.solved
        assert phone.tap(10, 10).tobytes() not in {home, *screens}, "home again, after two taps"
    assert (len(screens), solved) == (12, 1)


def test_the_newest_of_a_cell_is_compared_within_its_run():
    old, new, own = result("trl", seconds=9), result("trl", "r2", seconds=8), result(seconds=2)
    assert pairs([old, own, new]) == [(old, own)]
    assert pairs([new, own]) == [(new, own)]
    assert pairs([own, result("trl", turns=6)]) == [(None, own)]


def test_sides_that_did_something_else_are_no_pair():
    other = result("trl") | {"answer_tokens": 7}
    assert differences(other, result()) == ["answer_tokens: 7 and 2"]
    with pytest.raises(SystemExit, match="did not do the same: answer_tokens: 7 and 2"):
        page([other, result()])


def test_the_page_has_ratios_and_failures():
    failed = {k: v for k, v in result("trl", turns=6).items() if not k.endswith(("_s", "_gib"))} | {
        "failed": "no | memory"
    }
    lines = page([result("trl", seconds=9.0), result(), failed, result(turns=6), result(turns=1)]).splitlines()
    row = {line.split(" | ")[0]: line for line in lines if line.startswith("| ")}
    assert (
        "| 9.00 (1.00–3.00) | 4.50 + 4.50 | 9.00 | 2.00 (1.00–3.00) | 1.00 + 1.00 | 2.00 | **4.5** | 4.5 |"
        in row["| 3"]
    )
    assert "| failed: no / memory |" in row["| 6"]
    assert "| not measured |" in row["| 1"]


def test_a_line_that_is_no_result_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(result()) + "\n{}\n")
    with pytest.raises(SystemExit, match=r"a\.jsonl:2: no result"):
        read([path])


def test_the_page_is_that_of_its_results():
    assert Path(PAGE).read_text(encoding="utf-8") == page(read(sorted(RESULTS.glob("*.jsonl"))))
