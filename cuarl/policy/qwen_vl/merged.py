"""Products of frozen float32 weights with adapters (LoRA, arXiv:2106.09685), merged for the product alone.

    y = x (W + s B A)ᵀ        dx = dy (W + s B A)        dA = s (dy B)ᵀ x        dB = s dyᵀ (x Aᵀ)

The same as two products beside each other, up to rounding, without their sums over all tokens, neither forward nor
backward. In half precision a merged weight would lose what the adapter adds to it: there they stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Up = tuple[int, int, int, torch.Tensor, float]
"""Number of a product, first and last + 1 of its ranks, its (out, rank) factor and its scale."""


def products(
    x: torch.Tensor,
    weights: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor | None],
    down: torch.Tensor,
    ups: Sequence[Up],
) -> list[torch.Tensor]:
    """What each of some frozen ``weights`` (out, in) makes of ``x`` (N, in), with what adapters add to them.

    ``down`` (all ranks, in) are their first factors.
    """
    places = tuple((i, start, stop, scale) for i, start, stop, _, scale in ups)
    return list(_Merged.apply(x, down, tuple(weights), tuple(biases), places, *(up for _, _, _, up, _ in ups)))


class _Merged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, down: torch.Tensor, *given: Any) -> tuple[torch.Tensor, ...]:
        weights, biases, places, *ups = given
        whole = list(weights)
        for (i, start, stop, scale), up in zip(places, ups, strict=True):
            whole[i] = torch.addmm(whole[i], up, down[start:stop], alpha=scale)
        ctx.places = places
        ctx.save_for_backward(x, down, *ups, *whole)
        return tuple(torch.nn.functional.linear(x, w, b) for w, b in zip(whole, biases, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, down, *rest = ctx.saved_tensors
        ups, whole = rest[: len(ctx.places)], rest[len(ctx.places) :]
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = gradients[0] @ whole[0]
            for gradient, weight in zip(gradients[1:], whole[1:], strict=True):
                of_x.addmm_(gradient, weight)
        low = x @ down.t()
        of_low = torch.zeros_like(low)
        of_ups = []
        for (i, start, stop, scale), up in zip(ctx.places, ups, strict=True):
            torch.mm(gradients[i], up * scale, out=of_low[:, start:stop])
            of_ups.append((gradients[i].t() @ low[:, start:stop]).mul_(scale))
        return of_x, of_low.t() @ x, None, None, None, *of_ups
