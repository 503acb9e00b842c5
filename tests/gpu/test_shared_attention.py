"""Two flash attentions joined are one attention: outputs and gradients against the plain form in float32."""

import pytest
import torch

from cuarl.pretrain.shared_attention import Bounds, attend

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

PROMPTS, ROUNDS, TOKENS, OTHERS = [300] * 3, [30, 25, 40, 10, 5, 60, 61, 62], [95, 15, 183], [350]


def bounds(device):
    def of(lengths):
        return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device=device)

    first, end = sum(PROMPTS), sum(PROMPTS) + sum(ROUNDS)
    return Bounds(of(PROMPTS + ROUNDS + OTHERS), 350, of(PROMPTS), 300, of(TOKENS), 183, first, end)


def test_joined_attention_equals_the_plain_one():
    torch.manual_seed(0)
    count = sum(PROMPTS) + sum(ROUNDS) + sum(OTHERS)
    given = [2 * torch.randn(count, heads, 32) for heads in (8, 4, 4)]
    grad = torch.randn(count, 8, 32)
    found = []
    for device, dtype in (("cuda", torch.bfloat16), ("cpu", torch.float32)):
        # both start from what half precision can hold
        q, k, v = (t.bfloat16().to(device, dtype).requires_grad_() for t in given)
        out = attend(q, k, v, bounds(device))
        out.backward(grad.bfloat16().to(device, dtype))
        found.append([t.detach().float().cpu() for t in (out, q.grad, k.grad, v.grad)])
    for fast, plain in zip(*found, strict=True):
        assert (fast - plain).norm() < 0.01 * plain.norm()
