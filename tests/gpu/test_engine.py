"""The engine and the unpadded path on a CUDA device: captured steps and kernels against the plain forms."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.qwen_vl.engine import attention
from cuarl.policy.qwen_vl.engine.engine import Engine
from cuarl.policy.qwen_vl.engine.pages import PAGE
from cuarl.policy.qwen_vl.fused import ops
from cuarl.policy.qwen_vl.generate import answer_by_layers
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.conftest import qwen3_folder, qwen25_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import prompt, row, screen

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def _policy(folder: Path, dtype: str) -> QwenVLPolicy:
    policy = load_policy(
        ModelSpec(model=str(folder), lora=LoraSpec(rank=4), train="adapter", dtype=dtype, device="cuda")  # type: ignore[arg-type]
    )
    torch.manual_seed(3)
    for name, p in policy.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
    return policy


@pytest.fixture(params=["qwen3_folder", "qwen25_folder"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def _jobs(policy: QwenVLPolicy, params: SamplingParams, count: int = 7) -> list[Job]:
    prompts = [
        prompt(policy, "go", screen(1)),
        prompt(policy, "open the settings", screen(2), screen(3, 128, 64)),
        prompt(policy, "no picture at all"),
    ]
    return [Job(prompts[i % 3], params, seed=100 + i) for i in range(count)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_captured_steps_give_the_plain_answers(folder: Path, temperature: float) -> None:
    policy = _policy(folder, "float32")
    params = SamplingParams(temperature=temperature, max_tokens=40)
    ours, plain = _jobs(policy, params), _jobs(policy, params)
    Engine(policy).generate(ours)
    answer_by_layers(policy, plain)
    for one, other in zip(ours, plain, strict=True):
        assert one.tokens == other.tokens
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_recorded_is_what_scoring_says(folder: Path, dtype: str) -> None:
    policy = _policy(folder, dtype)
    jobs = _jobs(policy, SamplingParams(max_tokens=20))
    for job, found in zip(jobs, generate(policy, jobs), strict=True):
        made = Row(found.prompt_ids, job.prompt.screenshots, found.token_ids)
        with torch.no_grad():
            scores = Scorer(policy).eval()(policy.collate([made])).logprobs[0].tolist()
        assert found.logprobs == pytest.approx(scores, abs=1e-3 if dtype == "float32" else 0.2)


def test_a_buffer_that_moves_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuarl.policy.qwen_vl.engine.engine._ROOM_AT_FIRST", 1)
    policy = _policy(folder, "float32")
    params = SamplingParams(max_tokens=150)
    ours, plain = _jobs(policy, params, 5), _jobs(policy, params, 5)
    Engine(policy).generate(ours)
    answer_by_layers(policy, plain)
    assert [j.tokens for j in ours] == [j.tokens for j in plain]


def test_waves_of_other_lengths_need_no_further_capture(folder: Path) -> None:
    policy = _policy(folder, "bfloat16")
    engine = Engine(policy)
    engine.generate(_jobs(policy, SamplingParams(max_tokens=30), 4))
    steps = dict(engine._steps)
    engine.generate(_jobs(policy, SamplingParams(max_tokens=9), 3))
    assert engine._steps == steps


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("pack", [False, True])
def test_unpadded_scores_and_gradients_equal_the_padded_ones(folder: Path, dtype: str, pack: bool) -> None:
    policy = _policy(folder, dtype)
    first = row(policy, "go", [screen(2)], [50, 51])
    rows = [row(policy, "go", [screen(1)], a) for a in ([40, 41, 42], [43], [44, 45])]
    rows += [first, Row((*first.prompt_ids, *first.answer_ids, 30, 31), first.screenshots, (52, 53))]
    found = []
    for way in (False, True):
        scorer = Scorer(policy).train()
        scorer.unpadded = way
        policy.model.zero_grad()
        scores = scorer(policy.collate(rows, pack=pack), 0.8)
        (scores.logprobs.sum() + 0.1 * scores.entropy.sum()).backward()
        found.append((scores.logprobs.detach(), torch.cat([p.grad.flatten() for p in policy.parameters()])))  # type: ignore[union-attr]
    (a, ga), (b, gb) = found
    assert (a - b).abs().max() < (1e-3 if dtype == "float32" else 0.15)
    assert (ga - gb).norm() / ga.norm() < (1e-3 if dtype == "float32" else 0.05)


@pytest.mark.parametrize(
    ("rows", "heads", "kv", "size"), [(3, 4, 2, 32), (16, 16, 8, 128), (5, 16, 2, 128), (64, 32, 8, 128)]
)
def test_paged_attention_equals_the_plain_form(rows: int, heads: int, kv: int, size: int) -> None:
    torch.manual_seed(0)
    pages = 400
    keys, values = (torch.randn(pages * PAGE, kv, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    table = torch.randint(0, pages, (rows, 64), device="cuda", dtype=torch.int32)
    lengths = torch.randint(1, 64 * PAGE, (rows,), device="cuda", dtype=torch.int32)
    lengths[0] = 1
    q = torch.randn(rows, heads, size, device="cuda", dtype=torch.bfloat16)
    run = attention.paged_attention(rows, heads, kv, size, q.device)
    assert run is not attention.decode
    ours, plain = (f(q, keys, values, table, lengths, size**-0.5).float() for f in (run, attention.decode))
    assert (ours - plain).norm() / plain.norm() < 1e-2


@pytest.mark.parametrize("heads", [(16, 8), (4, 4), (16, 2)])
def test_flash_over_segments_equals_the_plain_form(heads: tuple[int, int]) -> None:
    torch.manual_seed(0)
    h, kv = heads
    parts = attention.segments([5, 100, 1, 64], [5, 300, 77, 64], torch.device("cuda"))
    made = [torch.randn(n, c, 128, device="cuda", dtype=torch.bfloat16) for n, c in ((170, h), (446, kv), (446, kv))]
    found = []
    for way in (torch.bfloat16, torch.float32):
        q, k, v = (t.detach().clone().to(way).requires_grad_() for t in made)
        out = attention.causal(q, k, v, parts, 0.1)
        weight = torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)
        (out * weight).sum().backward()
        found.append([t.float() for t in (out, q.grad, k.grad, v.grad)])  # type: ignore[union-attr]
    for ours, plain in zip(*found, strict=True):
        assert (ours - plain).norm() / plain.norm() < 2e-2


def _relative(ours: torch.Tensor, plain: torch.Tensor) -> float:
    return float((ours.float() - plain.float()).norm() / plain.float().norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7, 48), (130, 2048), (9, 4096)])
def test_kernels_equal_their_plain_forms(
    dtype: torch.dtype, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    bound = 1e-5 if dtype == torch.float32 else 1e-2
    x, y = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(2))
    weight = torch.randn(shape[1], device="cuda", dtype=dtype)
    heads = torch.randn(shape[0], 6, 32, device="cuda", dtype=dtype)
    angle = torch.randn(shape[0], 16, device="cuda").repeat(1, 2)
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
    head_weight = torch.randn(32, device="cuda", dtype=dtype)
    cases = {
        "norm": ([x], lambda a: ops.rms_norm(a, weight, 1e-6)),
        "rotate": ([heads], lambda a: ops.norm_rotate(a, head_weight, cos, sin, 1e-6)),
        "rotate only": ([heads[:, 2:5]], lambda a: ops.norm_rotate(a, None, cos, sin, 1e-6)),
        "swiglu": ([x, y], ops.swiglu),
    }
    for name, (inputs, run) in cases.items():
        found = []
        for fast in (True, False):
            monkeypatch.setattr(ops, "fast", lambda t, fast=fast: fast)
            mine = [t.detach().clone().requires_grad_() for t in inputs]
            out = run(*mine)
            (out.float() * torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)).sum().backward()
            found.append([out.detach(), *(t.grad for t in mine)])
        for ours, plain in zip(*found, strict=True):
            assert _relative(ours, plain) < bound, name


def test_patches_made_on_the_device_have_the_same_bits(folder: Path) -> None:
    policy = _policy(folder, "float32")
    screens = [screen(1), screen(2, 130, 70), screen(3, 1080, 600)]
    assert torch.equal(policy.images.patches(screens), policy.images.patches_on(policy.device, screens).cpu())
