"""Layers in four bits compute what usual ones with the same numbers do, forward and backward."""

import copy

import pytest
import torch
from torch import nn

from cuarl.policy.nf4.linear import Linear4, dequantise, quantise


def layer(*, bias: bool, dtype: torch.dtype = torch.float32) -> nn.Linear:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(96, 40, bias=bias).to(dtype)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_products_and_gradients_are_those_of_a_usual_layer(bias: bool, dtype: torch.dtype) -> None:
    packed = Linear4(layer(bias=bias, dtype=dtype))
    plain = packed.plain(dtype)
    one, other = (torch.linspace(-1, 1, 3 * 96).view(3, 96).to(dtype).requires_grad_() for _ in range(2))
    out, expected = packed(one), plain(other)
    assert out.dtype == dtype and torch.equal(out, expected)
    out.square().sum().backward()
    expected.square().sum().backward()
    assert torch.equal(one.grad, other.grad)
    assert not any(p.requires_grad for p in packed.parameters())


def test_nothing_unpacked_is_kept_for_the_backward_pass() -> None:
    packed, x = Linear4(layer(bias=True)), torch.ones(2, 96, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        packed(x).sum()
    assert not kept


def test_a_weight_takes_four_bits_and_moves_with_its_module() -> None:
    made = nn.Sequential(layer(bias=False))
    quantise(made, ["0"], torch.device("cpu"))
    size = sum(p.nbytes for p in made.parameters())
    assert size < 96 * 40 * 4.5 / 8
    other = copy.deepcopy(made)
    x = torch.ones(1, 96)
    assert torch.equal(other(x), made(x))
    assert all(p.device.type == "meta" for p in other.to("meta").parameters())
    expected = made(x)
    dequantise(made, torch.float32)
    assert type(made[0]) is nn.Linear and torch.equal(made(x), expected)
