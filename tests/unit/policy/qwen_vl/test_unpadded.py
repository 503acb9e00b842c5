"""Sequences behind each other against the padded path, on a CPU with plain attention."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from cuarl.policy.inputs import Row
from cuarl.policy.load import load_policy
from cuarl.policy.qwen_vl import unpadded
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.train.learner import _checkpoint_activations
from tests.unit.policy.pictures import row, screen


def _rows(policy: QwenVLPolicy) -> list[Row]:
    """Shared prompts, single ones, answers of one token and of several, and a turn that extends another."""
    shared = [row(policy, "go", [screen(1)], answer) for answer in ([40, 41, 42], [43], [44, 45])]
    first = row(policy, "open the settings", [screen(2)], [50, 51])
    later = Row(
        (*first.prompt_ids, *first.answer_ids, *row(policy, "go", [screen(3, 96, 64)], []).prompt_ids),
        (*first.screenshots, screen(3, 96, 64)),
        (52, 53, 54),
    )
    return [*shared, first, later, row(policy, "no picture", [], [60])]


def _both(policy: QwenVLPolicy, rows: Sequence[Row], *, pack: bool, keep_bytes: int = 0) -> list[torch.Tensor]:
    """Log-probabilities, and the gradient of what is trained, padded and unpadded."""
    found: list[torch.Tensor] = []
    for way in (False, True):
        scorer = Scorer(policy, keep_bytes=keep_bytes).train()
        scorer.unpadded = way
        policy.model.zero_grad()
        scores = scorer(policy.collate(rows, pack=pack), 0.8)
        (scores.logprobs.sum() + 0.1 * scores.entropy.sum()).backward()
        gradients = [p.grad.flatten() for p in policy.model.parameters() if p.grad is not None]
        found += [scores.logprobs.detach(), torch.cat(gradients)]
    policy.model.eval()
    return found


@pytest.mark.parametrize("pack", [False, True])
def test_scores_and_gradients_of_an_adapter_are_those_of_the_padded_path(adapted: QwenVLPolicy, pack: bool) -> None:
    assert unpadded.fits(adapted) and adapted.unpadded
    padded, gradient, ours, our_gradient = _both(adapted, _rows(adapted), pack=pack)
    assert torch.allclose(padded, ours, atol=1e-5)
    assert torch.allclose(gradient, our_gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("folder", ["qwen3_folder", "qwen25_folder"])
def test_all_weights_get_their_gradients(folder: str, request: pytest.FixtureRequest) -> None:
    policy = load_policy(ModelSpec(model=str(request.getfixturevalue(folder)), train="full"))
    padded, gradient, ours, our_gradient = _both(policy, _rows(policy), pack=True)
    assert torch.allclose(padded, ours, atol=1e-5)
    assert torch.allclose(gradient, our_gradient, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("layers_kept", [0, 1, 99])
def test_what_is_computed_again_changes_nothing(adapted: QwenVLPolicy, layers_kept: int) -> None:
    _checkpoint_activations(adapted.base)
    inputs = adapted.collate(_rows(adapted))
    tokens = len(unpadded.lay_out(inputs).tokens)
    keep = layers_kept * tokens * unpadded.layer_bytes(adapted)
    padded, gradient, ours, our_gradient = _both(adapted, _rows(adapted), pack=False, keep_bytes=keep)
    assert torch.allclose(padded, ours, atol=1e-5)
    assert torch.allclose(gradient, our_gradient, rtol=1e-3, atol=1e-5)


def test_a_switched_off_adapter_adds_nothing(adapted: QwenVLPolicy) -> None:
    found = []
    for way in (False, True):
        scorer = Scorer(adapted).eval()
        scorer.unpadded = way
        with adapted.reference(), torch.no_grad():
            found.append(scorer(adapted.collate(_rows(adapted))).logprobs)
    assert torch.allclose(*found, atol=1e-5)


def test_only_what_is_computed_here_is_taken(qwen3_folder: object) -> None:
    dropout = ModelSpec(model=str(qwen3_folder), lora=LoraSpec(rank=2, dropout=0.1), train="adapter")
    eager = ModelSpec(model=str(qwen3_folder), attention="eager")
    assert not unpadded.fits(load_policy(dropout))
    assert not unpadded.fits(load_policy(eager))
