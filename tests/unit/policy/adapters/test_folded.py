import torch

from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer
from tests.unit.policy.pictures import prompt, row, screen


def _scores(policy: QwenVLPolicy) -> torch.Tensor:
    with torch.no_grad():
        rows: list[Row] = [row(policy, "go", [screen(1)], [40, 41, 42])]
        return Scorer(policy)(policy.collate(rows)).logprobs


def _folded(policy: QwenVLPolicy) -> set[bool]:
    """What the adapted layers say about themselves."""
    return {m.merged for m in policy.model.modules() if hasattr(m, "merged_adapters")}


def _adapters(policy: QwenVLPolicy) -> dict[str, torch.Tensor]:
    return {n: p for n, p in policy.model.named_parameters() if "lora_" in n}


def test_a_folded_adapter_gives_the_same_scores_and_leaves_every_weight_as_it_was(adapted: QwenVLPolicy) -> None:
    before = {n: p.clone() for n, p in adapted.model.named_parameters()}
    apart = _scores(adapted)
    for _ in range(3):
        with adapted.folded():
            assert _folded(adapted) == {True}
            assert (_scores(adapted) - apart).abs().max() < 1e-5
        assert _folded(adapted) == {False}
    assert torch.equal(_scores(adapted), apart)
    assert all(torch.equal(before[n], p) for n, p in adapted.model.named_parameters())


def test_weights_come_back_after_an_error(adapted: QwenVLPolicy) -> None:
    apart = _scores(adapted)
    try:
        with adapted.folded():
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert torch.equal(_scores(adapted), apart)


def test_an_update_is_sampled_from_at_once(adapted: QwenVLPolicy) -> None:
    with adapted.folded():
        old = _scores(adapted)
    # in place, as an optimiser does it; and by a new tensor, as loading does, which only the version tells
    with torch.no_grad():
        for p in _adapters(adapted).values():
            p.mul_(1.5)
    with adapted.folded():
        scaled = _scores(adapted)
    assert (scaled - _scores(adapted)).abs().max() < 1e-5 and (scaled - old).abs().max() > 1e-3
    for p in _adapters(adapted).values():
        p.data = p.data / 1.5
    adapted.updated()
    with adapted.folded():
        assert (_scores(adapted) - old).abs().max() < 1e-5


def test_the_reference_stays_the_base(adapted: QwenVLPolicy) -> None:
    with adapted.reference():
        base = _scores(adapted)
        with adapted.folded():
            assert torch.equal(_scores(adapted), base)


def test_a_model_in_half_precision_is_not_folded(adapted: QwenVLPolicy) -> None:
    adapted.base.to(torch.bfloat16)
    half = QwenVLPolicy(adapted.model, adapted.tokenizer, adapted.images, adapted.special, name="half")
    with half.folded():
        assert _folded(half) == {False}


def test_sampling_with_an_adapter_gives_what_sampling_without_folding_gives(adapted: QwenVLPolicy) -> None:
    jobs = [
        [Job(prompt(adapted, "go", screen(1)), SamplingParams(max_tokens=6), seed=i) for i in range(4)] for _ in "ab"
    ]
    folded = generate(adapted, jobs[0])
    adapted._folded = None
    apart = generate(adapted, jobs[1])
    assert [s.token_ids for s in folded] == [s.token_ids for s in apart]
