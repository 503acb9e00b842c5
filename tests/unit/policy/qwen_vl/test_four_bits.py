"""Policies whose base is in four bits: sampled, scored and trained on the same numbers."""

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from cuarl.errors import ConfigError
from cuarl.policy.fourbit import chosen_layers
from cuarl.policy.generate import generate
from cuarl.policy.jobs import Job
from cuarl.policy.load import examine, load_policy
from cuarl.policy.merge import merge
from cuarl.policy.nf4.linear import Linear4, dequantise
from cuarl.policy.qwen_vl.engine.engine import Engine
from cuarl.policy.qwen_vl.generate import answer_by_layers
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.sampling.sampler_copy import sampler_copy
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.pictures import prompt, row, screen


def loaded(folder: Path, **fields: object) -> QwenVLPolicy:
    """With an adapter that is not zero."""
    spec = {"model": str(folder), "lora": LoraSpec(rank=4), "train": "adapter", "quantization": "nf4"} | fields
    made = load_policy(ModelSpec.model_validate(spec))
    assert isinstance(made, QwenVLPolicy)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for name, p in made.model.named_parameters():
            if "lora_B" in name:
                nn.init.normal_(p, std=0.1)
    return made


@pytest.fixture(params=["qwen3_folder", "qwen25_folder"])
def packed(request: pytest.FixtureRequest) -> QwenVLPolicy:
    return loaded(request.getfixturevalue(request.param))


def unpacked(policy: QwenVLPolicy) -> QwenVLPolicy:
    """The same policy on usual layers with the numbers that its four bits stand for."""
    model = copy.deepcopy(policy.model)
    dequantise(model, policy.dtype)
    special = policy.special
    return QwenVLPolicy(model, policy.tokenizer, policy.images, special, name="plain")


def jobs(policy: QwenVLPolicy, *, max_tokens: int = 12) -> list[Job]:
    prompts = [prompt(policy, "go", screen(1)), prompt(policy, "open it", screen(2), screen(3, 128, 64))]
    return [Job(prompts[i % 2], SamplingParams(max_tokens=max_tokens), seed=i) for i in range(4)]


def scored(policy: QwenVLPolicy) -> torch.Tensor:
    rows = [row(policy, "go", [screen(1)], [40, 41, 42]), row(policy, "open it", [screen(2)], [50])]
    return Scorer(policy)(policy.collate(rows)).logprobs


def test_the_linear_layers_of_the_language_model_are_packed_and_nothing_else(packed: QwenVLPolicy) -> None:
    inside = {n for n, m in packed.base.named_modules() if isinstance(m, Linear4)}
    linears = {n for n, m in packed.base.named_modules() if type(m) is nn.Linear and "lora_" not in n}
    assert len(inside) == 7 * len(packed.base.model.language_model.layers)
    assert all("language_model.layers" in n for n in inside)
    assert {n.rpartition(".")[2] for n in linears if "visual" not in n} == {"lm_head"}
    assert {p.dtype for p in packed.parameters()} == {torch.float32}
    assert packed.dtype == torch.float32 and packed.unpadded and packed.engine() is not None


@pytest.mark.parametrize("stepwise", [False, True], ids=["unpacked copy", "unpacked for each product"])
def test_what_is_sampled_is_what_is_scored(packed: QwenVLPolicy, stepwise: bool) -> None:
    asked, by_layers = jobs(packed), jobs(packed)
    engine = Engine(packed, stepwise=stepwise)
    engine.generate(asked)
    answer_by_layers(packed, by_layers)
    assert [j.tokens for j in asked] == [j.tokens for j in by_layers]
    pictures = [[screen(1)], [screen(2), screen(3, 128, 64)]]
    goals = ["go", "open it"]
    rows = [row(packed, goals[i % 2], pictures[i % 2], j.tokens) for i, j in enumerate(asked)]
    with torch.no_grad():
        scores = Scorer(packed)(packed.collate(rows)).logprobs
    for job, other, score in zip(asked, by_layers, scores, strict=True):
        assert job.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert job.logprobs == pytest.approx(score[: len(job.tokens)].tolist(), abs=1e-4)
    # of weights in four bits no copy is made where memory counts: the adapters alone
    whole = Engine(unpacked(packed), stepwise=stepwise)
    whole.generate(jobs(packed, max_tokens=1))
    sizes = [e._weights.nbytes for e in (engine, whole) if e._weights is not None]
    assert sizes[0] == sizes[1] if not stepwise else sizes[0] < sizes[1] / 2


def test_a_changed_and_a_switched_off_adapter_reach_products_beside_it(packed: QwenVLPolicy) -> None:
    engine = Engine(packed, stepwise=True)
    engine.generate(jobs(packed))
    with torch.no_grad():
        for p in packed.parameters():
            p.add_(0.05)
    packed.updated()
    for around in (packed.on_device, packed.reference):
        asked, expected = jobs(packed), jobs(packed)
        with around():
            engine.generate(asked)
            answer_by_layers(packed, expected)
        assert [j.tokens for j in asked] == [j.tokens for j in expected]


def test_scores_and_gradients_are_those_of_usual_layers_with_the_same_numbers(packed: QwenVLPolicy) -> None:
    plain = unpacked(packed)
    for p, q in zip(plain.model.named_parameters(), plain.model.parameters(), strict=True):
        q.requires_grad_("lora_" in p[0])
    one, other = scored(packed), scored(plain)
    assert (one - other).abs().max() < 1e-4
    one.sum().backward()
    other.sum().backward()
    theirs = dict(plain.model.named_parameters())
    for name, p in packed.model.named_parameters():
        assert (p.grad is not None) == ("lora_" in name)
        if p.grad is not None:
            assert torch.allclose(p.grad, theirs[name].grad, rtol=1e-3, atol=1e-5), name


def test_it_is_another_model_than_in_sixteen_bits_but_not_by_much(qwen3_folder: Path) -> None:
    with torch.no_grad():
        off = (scored(loaded(qwen3_folder)) - scored(loaded(qwen3_folder, quantization="none"))).abs().max()
    assert 1e-3 < off < 1


def test_a_copy_that_samples_shares_what_is_packed(packed: QwenVLPolicy) -> None:
    other = sampler_copy(packed)
    mine = {n: m for n, m in packed.model.named_modules() if isinstance(m, Linear4)}
    theirs = dict(other.model.named_modules())
    for name, module in mine.items():
        for p, q in zip(module.parameters(), theirs[name].parameters(), strict=True):
            assert p.data_ptr() == q.data_ptr()
    with torch.no_grad():
        assert torch.equal(scored(other), scored(packed))


def test_the_same_files_make_the_same_bits(qwen3_folder: Path) -> None:
    one, other = loaded(qwen3_folder).model.state_dict(), loaded(qwen3_folder).model.state_dict()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_half_precision_computes_in_it(qwen3_folder: Path) -> None:
    policy = loaded(qwen3_folder, dtype="bfloat16")
    answers = jobs(policy)
    generate(policy, answers)
    assert policy.dtype == torch.bfloat16 and all(j.tokens for j in answers)
    with torch.no_grad():
        assert (scored(policy).float() - scored(loaded(qwen3_folder))).abs().max() < 0.25


def test_an_adapter_knows_what_it_was_trained_on(qwen3_folder: Path, tmp_path: Path) -> None:
    loaded(qwen3_folder).model.save_pretrained(tmp_path)
    spec = ModelSpec(model=str(qwen3_folder), adapter=str(tmp_path))

    def in_four_bits(asked: ModelSpec) -> bool:
        return any(isinstance(m, Linear4) for m in load_policy(asked).model.modules())

    assert not in_four_bits(spec)
    (tmp_path / "cuarl.json").write_text('{"quantization": "nf4"}')
    assert in_four_bits(spec)
    assert not in_four_bits(spec.model_copy(update={"quantization": "none"}))
    examined = examine(spec)
    assert examined is not None and 0 < examined.packed < examined.parameters


def test_merging_writes_the_numbers_that_it_was_trained_on(qwen3_folder: Path, tmp_path: Path) -> None:
    policy = loaded(qwen3_folder)
    policy.model.save_pretrained(tmp_path / "adapter")
    spec = ModelSpec(model=str(qwen3_folder), adapter=str(tmp_path / "adapter"), quantization="nf4")
    assert merge(spec, tmp_path / "merged", "float32").largest < 1e-4
    with torch.no_grad():
        written = load_policy(ModelSpec(model=str(tmp_path / "merged")))
        assert isinstance(written, QwenVLPolicy)
        assert (scored(written) - scored(policy)).abs().max() < 1e-4


def test_what_has_no_sense_in_four_bits_is_refused(qwen3_folder: Path) -> None:
    with pytest.raises(ConfigError, match="can't be trained themselves"):
        load_policy(ModelSpec(model=str(qwen3_folder), train="full", quantization="nf4"))
    model = load_policy(ModelSpec(model=str(qwen3_folder))).base
    layer = model.model.language_model.layers[0]
    layer.experts = nn.Parameter(torch.zeros(8, 200, 200))
    with pytest.raises(ConfigError, match="experts can't be kept"):
        chosen_layers(model)
    model.config.quantization_config = {"quant_method": "other"}
    with pytest.raises(ConfigError, match="comes quantised already"):
        chosen_layers(model)
