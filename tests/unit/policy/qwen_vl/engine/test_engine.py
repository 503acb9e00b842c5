"""The engine against the plain path, on a CPU: as it samples there, and step by step without capture."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import torch

from cuarl.policy.jobs import Job, SamplingHalted
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.engine import engine as engine_module
from cuarl.policy.qwen_vl.engine import prompts as prompts_module
from cuarl.policy.qwen_vl.engine.engine import Engine
from cuarl.policy.qwen_vl.engine.fits import fits
from cuarl.policy.qwen_vl.engine.pages import PAGE
from cuarl.policy.qwen_vl.generate import answer_by_layers
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import Message, Picture, SampledText, SamplingParams, Text
from tests.unit.policy.pictures import SYSTEM, prompt, screen


@pytest.fixture(params=[False, True], ids=["plainly", "stepwise"])
def make(request: pytest.FixtureRequest) -> Callable[..., Engine]:
    """Makes an engine that answers in one of the two ways."""
    return partial(Engine, stepwise=request.param)


def _jobs(policy: QwenVLPolicy, params: SamplingParams, count: int = 6) -> list[Job]:
    """Prompts of several lengths, some shared."""
    prompts = [
        prompt(policy, "go", screen(1)),
        prompt(policy, "open the settings", screen(2), screen(3, 128, 64)),
        prompt(policy, "no picture at all"),
    ]
    return [Job(prompts[i % 3], params, seed=100 + i) for i in range(count)]


def _check(policy: QwenVLPolicy, jobs: Sequence[Job], engine: Engine) -> None:
    """The engine's answers are those of the model's own layers."""
    engine.generate(jobs)
    by_layers = [Job(j.prompt, j.params, j.seed) for j in jobs]
    answer_by_layers(policy, by_layers)
    for job, expected in zip(jobs, by_layers, strict=True):
        assert job.tokens == expected.tokens
        assert job.stop == expected.stop
        assert job.logprobs == pytest.approx(expected.logprobs, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_answers_are_those_of_the_plain_path(
    policy: QwenVLPolicy, temperature: float, make: Callable[..., Engine]
) -> None:
    assert fits(policy)
    _check(policy, _jobs(policy, SamplingParams(temperature=temperature, max_tokens=40), 7), make(policy))


def test_an_adapter_is_merged_and_the_base_left_alone(adapted: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    before = {n: p.detach().clone() for n, p in adapted.model.named_parameters()}
    _check(adapted, _jobs(adapted, SamplingParams(max_tokens=20)), make(adapted))
    assert all(torch.equal(p, before[n]) for n, p in adapted.model.named_parameters())


def test_changed_weights_are_merged_anew_and_nothing_known_is_used(
    adapted: QwenVLPolicy, make: Callable[..., Engine]
) -> None:
    engine, params = make(adapted), SamplingParams(max_tokens=8)
    _check(adapted, _jobs(adapted, params), engine)
    with torch.no_grad():
        for name, p in adapted.model.named_parameters():
            if "lora_B" in name:
                p.add_(0.05)
    adapted.updated()
    reused = engine.work.reused_tokens
    _check(adapted, _jobs(adapted, params), engine)
    assert engine.work.reused_tokens == reused


def test_top_k_and_top_p_cut_as_they_do_elsewhere(qwen3: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    p = prompt(qwen3, "go", screen(1))
    settings = [
        SamplingParams(top_k=3, max_tokens=9),
        SamplingParams(top_p=0.5, max_tokens=9),
        SamplingParams(max_tokens=9),
    ]
    _check(qwen3, [Job(p, s, seed=i) for i, s in enumerate(settings)], make(qwen3))


def _turns(policy: QwenVLPolicy, goal: str, answers: Sequence[tuple[int, ...]], first: int = 0) -> Prompt:
    """The prompt of the turn behind some answers, with screenshots from number ``first`` on."""
    messages = [Message("system", (Text(SYSTEM),))]
    for i in range(len(answers) + 1):
        messages.append(Message("user", (Picture(screen(first + i)), Text(goal if i == 0 else "next"))))
        if i < len(answers):
            messages.append(Message("assistant", (SampledText(policy.decode(answers[i]), answers[i]),)))
    found = policy.render(messages)
    assert isinstance(found, Prompt)
    return found


def test_a_later_turn_computes_only_what_is_new(policy: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    engine, params = make(policy), SamplingParams(max_tokens=24)
    answers: list[list[tuple[int, ...]]] = [[], []]
    previous = 0
    for turn in range(4):
        jobs = [Job(_turns(policy, "go", answers[i], first=i), params, seed=9 * turn + i) for i in range(2)]
        before = copy.copy(engine.work)
        _check(policy, jobs, engine)
        computed = sum(len(j.prompt.ids) for j in jobs) - (engine.work.reused_tokens - before.reused_tokens)
        if turn:
            # all but the last token of the answer, down to a whole page
            assert computed <= sum(len(j.prompt.ids) for j in jobs) - previous + 2 * (PAGE + 1)
        for i, job in enumerate(jobs):
            answers[i].append(tuple(job.tokens))
        previous = sum(len(j.prompt.ids) + len(j.tokens) for j in jobs)


def test_a_window_that_moved_is_computed_from_where_it_differs(
    qwen3: QwenVLPolicy, make: Callable[..., Engine]
) -> None:
    engine, params = make(qwen3), SamplingParams(max_tokens=5)
    whole = Job(_turns(qwen3, "go", [(40, 41), (42, 43)]), params, seed=1)
    engine.generate([whole])
    _check(qwen3, [Job(_turns(qwen3, "go", [(42, 43)], first=1), params, seed=2)], engine)


def test_attempts_share_their_prompt(qwen3: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    engine = make(qwen3)
    p = prompt(qwen3, "go", screen(1))
    _check(qwen3, [Job(p, SamplingParams(max_tokens=20), seed=i) for i in range(9)], engine)
    assert (engine.work.prompts, engine.work.prompt_tokens) == (1, len(p.ids))


def test_answers_that_outgrow_their_pages_get_more(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Engine]
) -> None:
    monkeypatch.setattr(engine_module, "_ROOM_AT_FIRST", 1)
    monkeypatch.setattr(engine_module, "_ROOM_UNCAPTURED", 1)
    _check(qwen3, _jobs(qwen3, SamplingParams(max_tokens=200), 5), make(qwen3))


def test_what_does_not_fit_at_once_is_answered_in_parts(qwen3: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    jobs = _jobs(qwen3, SamplingParams(max_tokens=60), 6)
    whole = make(qwen3)
    whole.generate(_jobs(qwen3, SamplingParams(max_tokens=60), 6))
    page = whole._page_bytes
    engine = make(qwen3, budget_bytes=40 * page)
    _check(qwen3, jobs, engine)
    assert 0 < sum(b.nbytes for b in engine._buffer) <= 40 * page
    _check(qwen3, _jobs(qwen3, SamplingParams(max_tokens=60), 6), engine)


def test_a_prompt_beyond_the_budget_is_named(qwen3: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    engine = make(qwen3)
    engine.generate(_jobs(qwen3, SamplingParams(max_tokens=2), 1))
    small = make(qwen3, budget_bytes=3 * engine._page_bytes)
    with pytest.raises(RuntimeError, match=r"a prompt of \d+ tokens and its answer need .* GiB"):
        small.generate(_jobs(qwen3, SamplingParams(max_tokens=50), 1))


def test_a_released_engine_starts_again(adapted: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    engine = make(adapted)
    _check(adapted, _jobs(adapted, SamplingParams(max_tokens=6)), engine)
    engine.release()
    assert engine.nbytes == 0
    _check(adapted, _jobs(adapted, SamplingParams(max_tokens=6)), engine)


def test_long_prompts_take_several_passes(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Engine]
) -> None:
    monkeypatch.setattr("cuarl.policy.qwen_vl.engine.prompts.TOKENS_AT_ONCE", 13)
    _check(qwen3, _jobs(qwen3, SamplingParams(max_tokens=6)), make(qwen3))


def test_rows_that_end_make_room(qwen3: QwenVLPolicy, make: Callable[..., Engine]) -> None:
    p = prompt(qwen3, "go", screen(1))
    jobs = [Job(p, SamplingParams(max_tokens=3 if i < 18 else 30), seed=i) for i in range(20)]
    engine = make(qwen3)
    _check(qwen3, jobs, engine)
    # one batch of 64 places until the short ones end, then places for four
    assert engine.work.decode_rows < 64 * 6 + 4 * 30


def test_more_chances_than_are_held_at_once(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Engine]
) -> None:
    for module in ("step", "answer", "engine"):
        monkeypatch.setattr(f"cuarl.policy.qwen_vl.engine.{module}.CHANCES", 8)
    _check(qwen3, _jobs(qwen3, SamplingParams(max_tokens=30), 3), make(qwen3))


def test_what_is_halted_leaves_nothing_behind(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Engine]
) -> None:
    engine, asked = make(qwen3), iter(range(100))
    with monkeypatch.context() as patch:
        patch.setattr(qwen3, "halted", lambda: next(asked) > 4)
        with pytest.raises(SamplingHalted):
            engine.generate(_jobs(qwen3, SamplingParams(max_tokens=30)))
    qwen3.updated()
    _check(qwen3, _jobs(qwen3, SamplingParams(max_tokens=6)), engine)


def test_memory_that_was_never_written_is_never_read(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Engine]
) -> None:
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(torch.nan))
    _check(qwen3, _jobs(qwen3, SamplingParams(max_tokens=20), 7), make(qwen3))


def _episodes(policy: QwenVLPolicy, engine: Engine, turns: int = 3) -> list[tuple[list[int], list[float]]]:
    """Answers of two attempts at two tasks, turn by turn."""
    answers: list[list[tuple[int, ...]]] = [[], [], [], []]
    found = []
    for turn in range(turns):
        jobs = [
            Job(_turns(policy, f"go {i // 2}", answers[i]), SamplingParams(max_tokens=30), 7 * turn + i)
            for i in range(4)
        ]
        engine.generate(jobs)
        for i, job in enumerate(jobs):
            answers[i].append(tuple(job.tokens))
        found += [(job.tokens, job.logprobs) for job in jobs]
    return found


def test_the_same_waves_give_the_same_bits_whatever_was_known_before(adapted: QwenVLPolicy) -> None:
    fresh, used = Engine(adapted), Engine(adapted)
    expected = _episodes(adapted, fresh)
    _episodes(adapted, used, 1)
    used.generate(_jobs(adapted, SamplingParams(max_tokens=50), 5))
    used.forget()
    reused = used.work.reused_tokens
    assert _episodes(adapted, used) == expected
    assert used.work.reused_tokens - reused == fresh.work.reused_tokens > 0


def test_what_gives_way_depends_on_the_budget_alone(qwen3: QwenVLPolicy) -> None:
    whole = Engine(qwen3)
    _episodes(qwen3, whole)
    budget = whole._page_bytes * 30
    first, second = (Engine(qwen3, budget_bytes=budget) for _ in range(2))
    # other objects, at other places in memory
    kept = [object() for _ in range(1000)]
    assert _episodes(qwen3, first) == _episodes(qwen3, second) and kept
    assert first.work == second.work and first.work.reused_tokens < whole.work.reused_tokens


def test_no_row_waits_for_those_that_have_ended(qwen3: QwenVLPolicy) -> None:
    engine = Engine(qwen3)
    p = prompt(qwen3, "go", screen(1))
    engine.generate([Job(p, SamplingParams(max_tokens=n), seed=n) for n in (2, 3, 4, 40)])
    assert engine.work.decode_rows <= 4 + 4 + 2 * 2 + 40


@pytest.mark.usefixtures("two_lanes")
def test_lanes_answer_as_one_thread_does(adapted: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of several lanes, and prompts of several passes, some longer than a pass of a lane."""
    monkeypatch.setattr(prompts_module, "_IN_A_LANE", 24)
    monkeypatch.setattr(engine_module, "_ROWS_OF_A_LANE", 2)
    params = SamplingParams(max_tokens=20)
    engine = Engine(adapted)
    _check(adapted, _jobs(adapted, params, 12), engine)
    _check(adapted, _jobs(adapted, params, 12), engine)


@pytest.mark.usefixtures("two_lanes")
def test_an_error_in_a_lane_leaves_an_engine_that_answers(
    adapted: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_ROWS_OF_A_LANE", 2)
    engine, asked = Engine(adapted), []

    def halted() -> bool:
        asked.append(None)
        return len(asked) > 5

    monkeypatch.setattr(adapted, "halted", halted)
    with pytest.raises(SamplingHalted):
        engine.generate(_jobs(adapted, SamplingParams(max_tokens=40), 8))
    monkeypatch.undo()
    _check(adapted, _jobs(adapted, SamplingParams(max_tokens=20)), engine)
