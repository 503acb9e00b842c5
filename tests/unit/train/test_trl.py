"""The losses against TRL's own code on the same tensors. TRL is no dependency: install it beside cuarl to run these."""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from accelerate import Accelerator

from cuarl.train.batch import token_weights
from cuarl.train.loss import LossConfig, Tokens, policy_loss
from cuarl.train.rows import TokenRow

trainer = pytest.importorskip("trl.trainer.grpo_trainer", reason="TRL is not installed (pip install trl==1.16.0)")

LENGTHS = [3, 5, 1, 4]


def padded(generator, scale=1.0, shift=0.0):
    return torch.randn(len(LENGTHS), max(LENGTHS), generator=generator, dtype=torch.float64) * scale + shift


def theirs(columns, *, loss_type, level, low, high, beta, entropy_coef, cap=None):
    """TRL's ``_compute_loss``, given log-probabilities in place of a model."""
    new, old, sampler, ref, entropy, advantages, mask = columns
    weight = (old - sampler).exp().clamp(max=cap) if cap else None
    args = SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1)
    own = SimpleNamespace(
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=beta,
        args=args,
        loss_type=loss_type,
        epsilon_low=low,
        epsilon_high=high,
        use_vllm=cap is not None,
        vllm_importance_sampling_correction=True,
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=max(LENGTHS),
        accelerator=Accelerator(cpu=True),
        use_adaptive_entropy=False,
        _entropy_bonus_enabled=entropy_coef > 0,
        entropy_coef=entropy_coef,
        _metrics={"train": defaultdict(list)},
        _get_per_token_logps_and_entropies=lambda *a, **k: (new, entropy, None),
    )
    ids = torch.zeros(mask.shape, dtype=torch.long)
    inputs = {
        "prompt_ids": ids,
        "prompt_mask": ids,
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": advantages,
        "old_per_token_logps": old,
        "ref_per_token_logps": ref,
        "num_items_in_batch": mask.sum(),
        "importance_sampling_ratio": weight,
    }
    return trainer.GRPOTrainer._compute_loss(own, None, inputs)


CASES = [
    pytest.param("grpo", "token", {}, "sequence", id="grpo"),
    pytest.param("grpo", "token", {"kl_penalty_coef": 0.1}, "sequence", id="grpo with a penalty"),
    pytest.param("dr_grpo", "token", {}, "constant", id="dr-grpo"),
    pytest.param("dapo", "token", {"clip_high": 0.28, "entropy_coef": 0.01}, "token", id="dapo with entropy"),
    pytest.param("grpo", "sequence", {"clip_low": 0.03, "clip_high": 0.04, "ratio": "answer"}, "turn", id="gspo"),
    pytest.param("cispo", "token", {"surrogate": "weights", "clip_low": 1.0, "clip_high": 0.2}, "token", id="cispo"),
    pytest.param(
        "dapo", "token", {"decoupled": True, "importance_cap": 1.2}, "token", id="truncated importance sampling"
    ),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("loss_type", "level", "fields", "reduction"), CASES)
def test_losses_and_gradients_equal_those_of_trl(loss_type, level, fields, reduction, seed):
    config = LossConfig(**fields)
    g = torch.Generator().manual_seed(seed)
    old = padded(g, 0.5, -1.5)
    sampler = old + padded(g, 0.2) if config.decoupled else old
    new, ref = (old + padded(g, 0.3)).requires_grad_(), old + padded(g, 0.3)
    entropy, advantages = padded(g).abs(), torch.randn(len(LENGTHS), generator=g, dtype=torch.float64)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    high = 1 + config.clip_high if loss_type == "cispo" else config.clip_high
    wanted = theirs(
        (new, old, sampler, ref, entropy, advantages, mask.long()),
        loss_type=loss_type,
        level=level,
        low=config.clip_low,
        high=high,
        beta=config.kl_penalty_coef,
        entropy_coef=config.entropy_coef,
        cap=config.importance_cap,
    )
    (gradient,) = torch.autograd.grad(wanted, new)

    rows = [TokenRow(i, "", (1,), (2,) * n, (), None, (0.0,) * n, 1.0) for i, n in enumerate(LENGTHS)]
    weights = torch.tensor(token_weights(rows, reduction, constant_tokens=max(LENGTHS)), dtype=torch.float64)
    turns = torch.arange(len(LENGTHS))[:, None].expand_as(mask)[mask]
    tokens = Tokens(sampler[mask], advantages[turns], weights[turns], turns, old[mask])
    loss = policy_loss(new[mask], tokens, config, entropy=entropy[mask], reference=ref[mask])
    assert loss.total.item() == pytest.approx(wanted.item(), abs=1e-5)
    loss.total.backward()
    assert torch.allclose(new.grad, gradient, atol=1e-5)
