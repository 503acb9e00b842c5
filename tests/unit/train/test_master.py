"""All weights in 16 bits: what the optimiser changes is their float32 originals."""

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from cuarl.policy.master import Master
from cuarl.train.batch import BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.schedule import OptimConfig

from .policies import played, tiny_policy, weights

RATE, STEPS = 1e-5, 12


def learner_of(policy, **batch):
    optim = OptimConfig(learning_rate=RATE, weight_decay=0.1, max_grad_norm=0.5, adam_eps=1e-4)
    return Learner(policy, LearnerConfig(objective="imitation", batch=BatchConfig(**batch), optim=optim))


def batches():
    """The same for every policy: imitation asks for no logprobs of its own."""
    model = tiny_policy(full=True)
    return [played(model, [(1, 1, 1)], seed=step) for step in range(1, STEPS + 1)]


def trained(policy, **batch):
    """What each update's gradient was, clipped, and the originals at the end."""
    learner, gradients = learner_of(policy, **batch), []

    def note(optimizer, args, kwargs):
        gradients.append([p.grad.clone() for group in optimizer.param_groups for p in group["params"]])

    hook = register_optimizer_step_pre_hook(note)
    try:
        for step, batch in enumerate(batches(), 1):
            learner.begin_step(step)
            learner.update(batch, step)
    finally:
        hook.remove()
    return gradients, learner.state()


def stepped(start, gradients):
    """AdamW by its formula, one parameter after another, in the format of ``start`` (arXiv:1711.05101)."""
    parameters = [nn.Parameter(p.clone()) for p in start]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.1, eps=1e-4, foreach=False)
    for of_update in gradients:
        for p, g in zip(parameters, of_update, strict=True):
            p.grad = g.to(p.dtype)
        optimizer.step()
    return [p.detach() for p in parameters]


def test_steps_that_bfloat16_rounds_away_add_up_in_the_originals():
    policy = tiny_policy(full=True, dtype=torch.bfloat16)
    start = list(weights(policy).values())
    gradients, state = trained(policy)
    assert len(gradients) == STEPS and all(g.dtype == torch.float32 for of_update in gradients for g in of_update)

    # without originals every step of a weight as large as this is lost
    large = [p.float().abs() > 2e-2 for p in start]
    alone = stepped(start, gradients)
    assert all(torch.equal(a[of], s[of]) for a, s, of in zip(alone, start, large, strict=True))

    slow = stepped([p.float() for p in start], gradients)
    for kept, expected, used, begun in zip(state["master"], slow, weights(policy).values(), start, strict=True):
        assert kept.dtype == torch.float32
        assert torch.allclose(kept, expected, rtol=0, atol=1e-8)
        assert torch.equal(used, kept.bfloat16()), "what is computed with is the original, rounded"
        assert not torch.equal(kept, begun.float())
    moved = sum((u != b)[of].sum().item() for u, b, of in zip(weights(policy).values(), start, large, strict=True))
    assert moved > 100, "what is computed with has moved, too, where no single step could move it"


def test_training_in_bfloat16_goes_where_training_in_float32_goes():
    short = tiny_policy(full=True, dtype=torch.bfloat16)
    start = torch.cat([p.float().flatten() for p in weights(short).values()])
    exact = tiny_policy(full=True)
    exact.model.load_state_dict(short.model.state_dict())
    _, state = trained(short)
    trained(exact)
    went = torch.cat([p.flatten() for p in state["master"]]) - start
    right = torch.cat([p.flatten() for p in weights(exact).values()]) - start
    assert torch.cosine_similarity(went, right, dim=0) > 0.98
    used = torch.cat([p.float().flatten() for p in weights(short).values()])
    # half of bfloat16's spacing, and what both runs' steps may differ by
    assert ((used - right - start).abs() <= 2**-9 * used.abs() + 2 * STEPS * RATE).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_micro_batches_add_up_in_float32(dtype):
    """Added up in 16 bits, a thousand ones would stay at 256 (bfloat16), and a small one behind a large be lost."""
    used = nn.Parameter(torch.zeros(2, dtype=dtype))
    master = Master([used])
    for value in (1.0, *[2.0**-11] * 3):
        used.grad = torch.full((2,), value, dtype=dtype)
        master.take_gradients()
        assert used.grad is None
    assert master.parameters[0].grad.tolist() == [1 + 3 * 2.0**-11] * 2


def test_weights_in_float32_are_their_own_originals():
    policy = tiny_policy(dtype=torch.bfloat16)
    learner = Learner(policy, LearnerConfig())
    assert {p.dtype for p in policy.parameters()} == {torch.float32}, "an adapter on a base in bfloat16"
    assert "master" not in learner.state()
    used = nn.Parameter(torch.ones(1))
    assert Master([used]).parameters[0] is used


def test_originals_that_do_not_fit_are_refused_and_those_of_a_run_without_any_are_its_weights():
    used = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    master = Master([used])
    with pytest.raises(ValueError, match="0 float32 weights for 1 of 16 bits"):
        master.restore([])
    with torch.no_grad():
        used.fill_(2.0)
    master.restore(None)
    assert master.state()[0].tolist() == [2.0, 2.0, 2.0]
