"""What scoring on a CPU is made of: attention of answers behind shared prompts, and products with adapters merged."""

from __future__ import annotations

import pytest
import torch

from cuarl.policy.qwen_vl import branches, merged

# prompts with their answers: none but the first token, one, several of unequal lengths, more than one call takes
PROMPTS = [(5, [0]), (7, [3]), (4, [2, 0, 6, 1]), (6, [40, 70, 50, 3]), (3, [0, 0]), (2, [200, 5])]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Each answer by itself behind a copy of its prompt, one token after the other, in float64."""
    found, start = torch.zeros_like(q), 0

    def one(at: int, seen: list[int]) -> None:
        for head in range(q.shape[1]):
            of = head // (q.shape[1] // k.shape[1])
            weights = (k[seen, of] @ q[at, head] * scale).softmax(0)
            found[at, head] = weights @ v[seen, of]

    for length, answers in PROMPTS:
        prompt = list(range(start, start + length))
        for i, at in enumerate(prompt):
            one(at, prompt[: i + 1])
        start += length
        for n in answers:
            own = list(range(start, start + n))
            for i, at in enumerate(own):
                one(at, prompt + own[: i + 1])
            start += n
    return found


def test_answers_see_their_prompt_and_themselves() -> None:
    tokens = sum(length + sum(answers) for length, answers in PROMPTS)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(tokens, heads, 8, generator=generator, dtype=torch.float64, requires_grad=True)
        for heads in (4, 2, 2)
    )
    found = branches.attend(q, k, v, branches.calls(PROMPTS), 0.3)
    with torch.no_grad():
        expected = reference(q, k, v, 0.3)
    assert torch.allclose(found, expected, atol=1e-12)
    # what an answer says never moves another one, nor its prompt
    last = torch.zeros_like(found)
    last[-1] = 1.0
    (of_keys,) = torch.autograd.grad((found * last).sum(), k)
    moved = of_keys.abs().sum((1, 2)).nonzero()[:, 0].tolist()
    assert moved == [tokens - 207, tokens - 206, *range(tokens - 5, tokens)]


@pytest.mark.parametrize("frozen_input", [False, True])
def test_a_merged_product_is_that_of_base_and_adapters(frozen_input: bool) -> None:
    generator = torch.Generator().manual_seed(1)

    def made(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = made(9, 6).requires_grad_(not frozen_input)
    weights, biases = [made(5, 6), made(4, 6), made(3, 6)], [None, made(4), None]
    # two adapters on the first product, none on the second, one on the third
    down, ups = made(7, 6).requires_grad_(), [made(5, 2), made(5, 3), made(3, 2)]
    given = [(0, 0, 2, ups[0], 0.5), (0, 2, 5, ups[1], 2.0), (2, 5, 7, ups[2], 1.5)]
    for up in ups:
        up.requires_grad_()
    learnt = [down, *ups] if frozen_input else [x, down, *ups]

    def loss(products: list[torch.Tensor]) -> torch.Tensor:
        return sum((p.sin() * (i + 1)).sum() for i, p in enumerate(products))  # type: ignore[return-value]

    apart = [torch.nn.functional.linear(x, w, b) for w, b in zip(weights, biases, strict=True)]
    for i, start, stop, up, scale in given:
        apart[i] = apart[i] + scale * (x @ down[start:stop].t()) @ up.t()
    together = merged.products(x, weights, biases, down, given)
    for one, other in zip(apart, together, strict=True):
        assert torch.allclose(one, other, atol=1e-12)
    expected = torch.autograd.grad(loss(apart), learnt)
    for one, other in zip(expected, torch.autograd.grad(loss(together), learnt), strict=True):
        assert torch.allclose(one, other, atol=1e-12)
