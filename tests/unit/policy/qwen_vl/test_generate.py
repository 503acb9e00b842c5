import pytest
import torch

from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer
from cuarl.trajectory import Sampled
from tests.unit.policy.pictures import prompt, screen


def _jobs(policy: QwenVLPolicy, params: SamplingParams, count: int = 6) -> list[Job]:
    """Prompts of several lengths, some shared."""
    prompts = [
        prompt(policy, "go", screen(1)),
        prompt(policy, "open the settings", screen(2), screen(3, 128, 64)),
        prompt(policy, "no picture at all"),
    ]
    return [Job(prompts[i % 3], params, seed=100 + i) for i in range(count)]


def _likely_end(policy: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch, ids: tuple[int, ...], bias: float) -> None:
    """Make ``ids`` likelier everywhere, so that a model with random weights ends its answers."""
    logits = policy.decoder.logits

    def biased(hidden: torch.Tensor) -> torch.Tensor:
        out = logits(hidden)
        out[..., list(ids)] += bias
        return out

    monkeypatch.setattr(policy.decoder, "logits", biased)


def _rescored(policy: QwenVLPolicy, job: Job, sampled: Sampled) -> list[float]:
    row = Row(sampled.prompt_ids, job.prompt.screenshots, sampled.token_ids)
    with torch.no_grad():
        scores = Scorer(policy)(policy.collate([row]), sampled.temperature)
    values: list[float] = scores.logprobs[0].tolist()
    return values


@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_c36_recorded_logprobs_are_those_that_scoring_gives(policy: QwenVLPolicy, temperature: float) -> None:
    jobs = _jobs(policy, SamplingParams(temperature=temperature, max_tokens=7))
    for job, sampled in zip(jobs, generate(policy, jobs), strict=True):
        assert sampled.logprobs == pytest.approx(_rescored(policy, job, sampled), abs=1e-4)
        assert sampled.prompt_ids == job.prompt.ids
        assert sampled.images == tuple(s.ref for s in job.prompt.screenshots)


def test_greedy_answers_equal_those_of_transformers(policy: QwenVLPolicy) -> None:
    jobs = _jobs(policy, SamplingParams(temperature=0, max_tokens=6), count=3)
    ours = generate(policy, jobs)
    for job, sampled in zip(jobs, ours, strict=True):
        ids = torch.tensor([job.prompt.ids])
        extra = {}
        if job.prompt.screenshots:
            grids = [policy.images.grid(s.width, s.height) for s in job.prompt.screenshots]
            extra = {
                "pixel_values": policy.images.patches(job.prompt.screenshots),
                "image_grid_thw": torch.tensor([[1, g.rows, g.cols] for g in grids]),
            }
        theirs = policy.base.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            mm_token_type_ids=(ids == policy.special.image).int(),
            max_new_tokens=6,
            do_sample=False,
            suppress_tokens=list(policy.special.suppressed),
            **extra,
        )
        assert sampled.token_ids == tuple(theirs[0, ids.shape[1] :].tolist())


def test_a_rows_draws_do_not_depend_on_the_others(policy: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    _likely_end(policy, monkeypatch, (policy.special.end_of_turn,), bias=3.0)
    params = SamplingParams(max_tokens=20)
    together = generate(policy, _jobs(policy, params, count=12))
    assert len({len(s.token_ids) for s in together}) > 3, "rows must end at different times"
    for i, job in enumerate(_jobs(policy, params, count=12)):
        alone = generate(policy, [job])[0]
        assert alone.token_ids == together[i].token_ids
        assert alone.logprobs == pytest.approx(together[i].logprobs, abs=1e-4)


def test_seeds_differ_and_the_same_batch_is_the_same_bit_for_bit(qwen3: QwenVLPolicy) -> None:
    params = SamplingParams(max_tokens=5)
    found = []
    for _ in range(2):
        # what is known of a prompt changes the last digits
        qwen3.forget_prompts()
        found.append(generate(qwen3, _jobs(qwen3, params)))
    first, second = found
    assert first == second
    assert first[0].token_ids != first[3].token_ids, "same prompt, other seed"


def test_c27_answers_end_at_any_end_token_with_it_and_nothing_behind(
    qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = (qwen3.special.end_of_turn, qwen3.special.pad)
    monkeypatch.setattr(qwen3.renderer, "special", _with_eos(qwen3, ends))
    _likely_end(qwen3, monkeypatch, ends, bias=5.0)
    samples = generate(qwen3, _jobs(qwen3, SamplingParams(max_tokens=50), count=24))
    assert {s.token_ids[-1] for s in samples} == set(ends)
    for s in samples:
        assert s.stop == "eos"
        assert not set(s.token_ids[:-1]) & set(ends)
        assert "<|endoftext|>" not in s.text and "<|im_end|>" not in s.text


def _with_eos(policy: QwenVLPolicy, ends: tuple[int, ...]) -> object:
    from dataclasses import replace

    return replace(policy.special, eos=frozenset(ends))


def test_c27_an_answer_that_is_cut_off_has_no_end_token(qwen3: QwenVLPolicy) -> None:
    sampled = generate(qwen3, _jobs(qwen3, SamplingParams(temperature=0, max_tokens=3), count=1))[0]
    assert (sampled.stop, len(sampled.token_ids)) == ("length", 3)
    assert sampled.token_ids[-1] not in qwen3.special.eos


def test_an_answer_ends_where_the_context_does(qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    job = _jobs(qwen3, SamplingParams(temperature=0, max_tokens=9), count=1)[0]
    monkeypatch.setattr(qwen3, "context", len(job.prompt.ids) + 2)
    sampled = generate(qwen3, [job])[0]
    assert (sampled.stop, len(sampled.token_ids)) == ("length", 2)


def test_a_stop_string_ends_an_answer(qwen3: QwenVLPolicy) -> None:
    said = generate(qwen3, _jobs(qwen3, SamplingParams(max_tokens=8)))
    number, full = next((i, one) for i, one in enumerate(said) if one.stop == "length")
    stop = qwen3.decode(full.token_ids[2:3])
    cut = generate(qwen3, _jobs(qwen3, SamplingParams(max_tokens=8, stop=(stop,)))[number : number + 1])[0]
    assert cut.stop == "stop_string"
    assert cut.token_ids == full.token_ids[: len(cut.token_ids)]
    assert len(cut.token_ids) <= 3 and stop in cut.text


def test_placeholders_are_never_sampled(qwen3: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    s = qwen3.special
    assert {s.image, s.vision_start, s.vision_end} < set(s.suppressed)
    _likely_end(qwen3, monkeypatch, s.suppressed, bias=50.0)
    for sampled in generate(qwen3, _jobs(qwen3, SamplingParams(max_tokens=6))):
        assert not set(sampled.token_ids) & set(s.suppressed)


def test_each_answer_keeps_to_its_own_parameters(qwen3: QwenVLPolicy) -> None:
    p = prompt(qwen3, "go", screen(1))
    settings = [
        SamplingParams(temperature=0, max_tokens=4),
        SamplingParams(max_tokens=2),
        SamplingParams(top_k=1, max_tokens=4),
        SamplingParams(top_p=1e-6, max_tokens=4),
    ]
    greedy, short, top_k, top_p = generate(qwen3, [Job(p, s, seed=i) for i, s in enumerate(settings)])
    assert len(short.token_ids) == 2
    assert greedy.token_ids == top_k.token_ids == top_p.token_ids
    assert top_k.logprobs == pytest.approx([0.0] * 4), "only one token could be drawn"
    assert max(greedy.logprobs or ()) < -0.1


def test_samples_carry_the_version_of_the_weights(adapted: QwenVLPolicy) -> None:
    job = _jobs(adapted, SamplingParams(max_tokens=2), count=1)
    before = generate(adapted, job)[0]
    adapted.updated()
    after = generate(adapted, _jobs(adapted, SamplingParams(max_tokens=2), count=1))[0]
    assert (before.policy_version, after.policy_version) == (0, 1)
    adapted.updated(7)
    assert adapted.version == 7
