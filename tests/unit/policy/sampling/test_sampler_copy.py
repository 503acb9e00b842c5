"""Two policies on one base: what happens to one leaves the other alone."""

import pytest
import torch

from cuarl.errors import CheckpointError
from cuarl.policy.inputs import Row
from cuarl.policy.sampling.sampler_copy import copy_weights, sampler_copy
from cuarl.policy.score import Scorer
from tests.unit.train.policies import screens, tiny_policy


def said(policy):
    """Logprobs of an answer to a prompt with a picture."""
    image = (policy.special.image,) * 2
    row = Row((7, *image, 9), tuple(screens(1)), (11, 12))
    with torch.no_grad(), policy.folded():
        return Scorer(policy).eval()(policy.collate([row])).logprobs


def moved(policy, by=0.5):
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(by)
    policy.updated()


def test_a_copy_keeps_its_weights_until_it_is_given_others():
    policy = tiny_policy()
    other = sampler_copy(policy)
    before = said(policy)
    assert torch.equal(said(other), before)
    moved(policy)
    assert torch.equal(said(other), before)
    assert not torch.allclose(said(policy), before)
    copy_weights(other, policy, version=3)
    assert torch.equal(said(other), said(policy))
    assert other.version == 3


def test_a_copy_shares_what_is_frozen_and_nothing_else():
    policy = tiny_policy()
    other = sampler_copy(policy)
    for (name, p), (_, q) in zip(policy.model.named_parameters(), other.model.named_parameters(), strict=True):
        assert (p.data_ptr() == q.data_ptr()) == (not p.requires_grad), name
        assert p is not q
    mine = {id(m) for m in policy.model.modules()}
    assert not [n for n, m in other.model.named_modules() if id(m) in mine]
    # the tower's attention is called through functions that hold their layer
    held = [vars(m)["forward"].args[0] for m in other.model.modules() if "forward" in vars(m)]
    assert held
    assert not [layer for layer in held if id(layer) in mine]


def test_folding_and_switching_off_reach_one_alone():
    policy = tiny_policy()
    moved(policy)
    other = sampler_copy(policy)
    expected = said(other)
    with policy.reference():
        assert torch.equal(said(other), expected)
    with other.folded():
        plain = [m.base_layer.weight for m in policy.model.modules() if hasattr(m, "base_layer")]
        folded = [m.base_layer.weight for m in other.model.modules() if hasattr(m, "base_layer")]
        assert not any(torch.equal(a, b) for a, b in zip(plain, folded, strict=True))
    assert all(
        a.data_ptr() == m.base_layer.weight.data_ptr()
        for a, m in zip(plain, [m for m in other.model.modules() if hasattr(m, "base_layer")], strict=True)
    )


def test_a_fully_trained_policy_has_a_copy_too():
    policy = tiny_policy(full=True)
    other = sampler_copy(policy)
    before = said(other)
    moved(policy, 0.1)
    assert torch.equal(said(other), before)
    copy_weights(other, policy, version=1)
    assert torch.equal(said(other), said(policy))


def test_a_copy_on_a_device_of_its_own_shares_nothing():
    policy = tiny_policy()
    moved(policy)
    other = sampler_copy(policy, "cpu")
    before = said(policy)
    assert torch.equal(said(other), before)
    mine = {t.data_ptr() for t in (*policy.model.parameters(), *policy.model.buffers())}
    assert not [n for n, t in (*other.model.named_parameters(), *other.model.named_buffers()) if t.data_ptr() in mine]
    moved(policy, 0.1)
    assert torch.equal(said(other), before)
    copy_weights(other, policy, version=2)
    assert torch.equal(said(other), said(policy))


def test_a_copy_that_does_not_fit_is_told_and_left_as_it_is():
    policy, other = tiny_policy(), sampler_copy(tiny_policy(targets="attention"))
    before = said(other)
    moved(policy)
    with pytest.raises(CheckpointError, match="matched 24 of 42 trained weights"):
        copy_weights(other, policy, version=3)
    assert torch.equal(said(other), before) and other.version == 0
