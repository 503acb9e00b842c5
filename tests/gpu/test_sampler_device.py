"""A second copy on another GPU samples what the trained one does, and follows it without a file."""

import pytest
import torch

from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.sampling.sampler_copy import copy_weights, sampler_copy
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.conftest import qwen3_folder, tokenizer  # noqa: F401
from tests.unit.policy.pictures import prompt, screen

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs of one machine"),
]


def answers(policy):
    jobs = [Job(prompt(policy, "go" + "!" * (i % 3), screen(i % 2)), SamplingParams(max_tokens=6), i) for i in range(8)]
    return [(s.token_ids, s.policy_version) for s in generate(policy, jobs)]


def test_a_copy_on_another_gpu_follows(qwen3_folder):  # noqa: F811
    spec = ModelSpec(model=str(qwen3_folder), lora=LoraSpec(rank=4), train="adapter", device="cuda:0", dtype="float32")
    policy = load_policy(spec)
    other = sampler_copy(policy, "cuda:1")
    assert {p.device.index for p in other.model.parameters()} == {1}
    assert {b.device.index for b in other.model.buffers()} == {1}
    before = answers(policy)
    assert answers(other) == before
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.05)
    policy.updated(1)
    assert answers(other) == before
    copy_weights(other, policy, version=1)
    assert answers(other) == answers(policy) != before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_second_gpu_samples_and_trains_as_the_first_does(qwen3_folder, dtype):  # noqa: F811
    found = []
    for device in ("cuda:0", "cuda:1"):
        lora = LoraSpec(rank=4)
        spec = ModelSpec(model=str(qwen3_folder), lora=lora, train="adapter", device=device, dtype=dtype)
        policy = load_policy(spec)
        with torch.no_grad():
            for i, p in enumerate(policy.parameters()):
                p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(i)).mul(0.05))
        policy.updated(1)
        rows = [Row(prompt(policy, "go", screen(i)).ids, (screen(i),), (20, 21, 22)) for i in range(3)]
        scores = Scorer(policy).train()(policy.collate(rows)).logprobs
        scores.sum().backward()
        grads = [p.grad.cpu() for p in policy.parameters() if p.grad is not None]
        found.append((answers(policy), scores.detach().cpu(), grads))
    (one, scored, grads), (other, scored_too, grads_too) = found
    assert one == other
    assert torch.equal(scored, scored_too)
    assert grads
    assert all(torch.allclose(a, b, rtol=1e-2, atol=1e-4) for a, b in zip(grads, grads_too, strict=True))
