"""The kernel unpacks on a CUDA device what plain PyTorch does, and a policy there samples what it is scored as."""

from pathlib import Path

import pytest
import torch

from cuarl.policy.generate import generate
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.nf4.codes import pack, unpack, unpack_plainly
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.conftest import qwen3_folder, qwen25_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import prompt, row, screen

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("shape", [(1, 3), (5, 40), (300, 64), (4096, 1024)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_kernel_unpacks_what_plain_pytorch_does(shape: tuple[int, int], dtype: torch.dtype) -> None:
    packed = pack(torch.randn(shape, device="cuda") * 0.03)
    found, expected = unpack(packed, shape, dtype), unpack_plainly(packed, shape, dtype)
    assert found.dtype == dtype
    assert torch.allclose(found, expected, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-7)


def test_a_gpu_packs_what_a_cpu_does() -> None:
    given = torch.randn(300, 64) * 0.03
    here, there = pack(given), pack(given.cuda())
    assert (here.codes != there.codes.cpu()).float().mean() < 1e-3
    assert torch.allclose(here.scale_sizes, there.scale_sizes.cpu())


@pytest.mark.parametrize(("dtype", "bar"), [("float32", 1e-3), ("bfloat16", 0.25)])
@pytest.mark.parametrize("model", ["qwen3_folder", "qwen25_folder"])
def test_a_captured_step_samples_what_is_scored(
    request: pytest.FixtureRequest, model: str, dtype: str, bar: float
) -> None:
    folder: Path = request.getfixturevalue(model)
    spec = ModelSpec(
        model=str(folder), device="cuda", dtype=dtype, quantization="nf4", lora=LoraSpec(rank=4), train="adapter"
    )
    policy = load_policy(spec)
    with torch.no_grad():
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.1)
    jobs = [Job(prompt(policy, "go", screen(1)), SamplingParams(max_tokens=12), seed=i) for i in range(3)]
    generate(policy, jobs)
    rows = [row(policy, "go", [screen(1)], j.tokens) for j in jobs]
    scores = Scorer(policy)(policy.collate(rows)).logprobs
    for job, score in zip(jobs, scores.tolist(), strict=True):
        assert job.logprobs == pytest.approx(score[: len(job.tokens)], abs=bar)
    scores.sum().backward()
    assert all(p.grad is not None for p in policy.parameters())
