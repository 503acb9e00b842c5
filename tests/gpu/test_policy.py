"""A policy on an accelerator gives what it gives on a CPU."""

from pathlib import Path

import pytest
import torch

from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.conftest import qwen3_folder, qwen25_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import prompt, row, screen

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.fixture(params=["qwen3_folder", "qwen25_folder"])
def spec(request: pytest.FixtureRequest) -> ModelSpec:
    folder: Path = request.getfixturevalue(request.param)
    return ModelSpec(model=str(folder), lora=LoraSpec(rank=4), train="adapter", dtype="float32")


def test_scores_and_gradients_equal_those_of_a_cpu(spec: ModelSpec) -> None:
    results = []
    for device in ("cpu", "cuda"):
        policy = load_policy(spec.model_copy(update={"device": device}))
        rows = [row(policy, "go", [screen(1)], [40, 41]), row(policy, "go there", [screen(2), screen(3, 96, 64)], [42])]
        scores = Scorer(policy)(policy.collate([*rows, rows[0]]), 0.7)
        (scores.logprobs.sum() + scores.entropy.sum()).backward()
        gradient = torch.cat([p.grad.flatten().cpu() for p in policy.parameters() if p.grad is not None])
        results.append((scores.logprobs.detach().cpu(), gradient))
    assert (results[0][0] - results[1][0]).abs().max() < 1e-3
    assert torch.allclose(results[0][1], results[1][1], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_samples_are_those_that_are_scored(spec: ModelSpec, dtype: str) -> None:
    policy = load_policy(spec.model_copy(update={"device": "cuda", "dtype": dtype}))
    params = SamplingParams(max_tokens=6, top_k=50)
    jobs = [Job(prompt(policy, "go" + "!" * (i % 3), screen(i % 2)), params, seed=i) for i in range(8)]
    plain = [Job(j.prompt, SamplingParams(max_tokens=6), j.seed) for j in jobs]
    assert all(len(s.token_ids) <= 6 for s in generate(policy, jobs))
    for job, sampled in zip(plain, generate(policy, plain), strict=True):
        made = Row(sampled.prompt_ids, job.prompt.screenshots, sampled.token_ids)
        with torch.no_grad():
            scores = Scorer(policy)(policy.collate([made])).logprobs[0].tolist()
        assert sampled.logprobs == pytest.approx(scores, abs=1e-3 if dtype == "float32" else 0.1)
