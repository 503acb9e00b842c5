import math

import pytest
import torch

from cuarl.policy.distribution import Chance, draw, log_softmax, truncate

LOGITS = torch.tensor([[2.0, 1.0, 0.0]])


def _truncated(logits: torch.Tensor, *, top_k: int = 0, top_p: float = 1.0) -> torch.Tensor:
    return truncate(log_softmax(logits, 1.0), torch.tensor([top_k]), torch.tensor([top_p]))


def test_c36_the_temperature_divides_the_logits_before_the_softmax() -> None:
    assert log_softmax(LOGITS, 0.5)[0, 0].item() == pytest.approx(-0.1429, abs=1e-4)
    assert log_softmax(LOGITS, 1.0)[0, 0].item() == pytest.approx(-0.4076, abs=1e-4)


def test_c36_a_nucleus_is_renormalised() -> None:
    assert _truncated(LOGITS, top_p=0.9)[0, 0].item() == pytest.approx(-0.3133, abs=1e-4)
    assert _truncated(LOGITS, top_p=0.9)[0, 2].exp().item() == 0.0


def test_a_nucleus_keeps_at_least_the_likeliest_token() -> None:
    assert _truncated(LOGITS, top_p=0.01).exp().tolist() == [[1.0, 0.0, 0.0]]


def test_top_k_keeps_the_lower_id_of_a_tie() -> None:
    assert _truncated(torch.tensor([[0.0, 1.0, 1.0]]), top_k=1).exp().tolist() == [[0.0, 1.0, 0.0]]


def test_no_truncation_changes_nothing() -> None:
    assert torch.allclose(_truncated(LOGITS), log_softmax(LOGITS, 1.0), atol=1e-6)


def test_suppressed_tokens_have_no_probability_and_leave_the_rest_in_proportion() -> None:
    logp = log_softmax(LOGITS, 1.0, suppressed=torch.tensor([0]))
    assert logp.exp()[0].tolist() == pytest.approx([0.0, 1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    assert torch.isfinite((logp.exp() * logp).sum())


def test_drawn_tokens_have_the_frequencies_of_their_probabilities() -> None:
    logp = log_softmax(torch.tensor([[1.0, 0.0, -30.0, 2.0, -1.0]]), 1.0, suppressed=torch.tensor([4]))
    chance = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    drawn = draw(logp.expand(10_000, -1), chance)
    counts = torch.bincount(drawn.tokens, minlength=5) / 10_000
    assert torch.allclose(counts, logp[0].exp(), atol=2e-4)
    assert torch.equal(drawn.logprobs, logp[0, drawn.tokens])


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0 - 2**-53])
def test_an_impossible_token_is_never_drawn(chance: float) -> None:
    logits = torch.zeros(1, 6)
    logp = log_softmax(logits, 1.0, suppressed=torch.tensor([0, 3, 5]))
    assert draw(logp, torch.tensor([chance], dtype=torch.float64)).tokens.item() in (1, 2, 4)


def test_a_negative_chance_takes_the_likeliest() -> None:
    assert draw(log_softmax(LOGITS, 1.0), torch.tensor([-1.0], dtype=torch.float64)).tokens.tolist() == [0]


def test_chance_depends_on_seed_and_position_alone() -> None:
    a, b = Chance(7), Chance(7)
    assert b.at(100) == a.at(100)
    assert [a.at(i) for i in range(3)] == [b.at(i) for i in range(3)]
    assert Chance(8).at(0) != a.at(0)
    # a fixed stream, so that a stored seed can be drawn from again anywhere
    assert [Chance(0).at(i) for i in (0, 1, 64)] == [0.011546754286331562, 0.24154919656271812, 0.7594617778409748]
    assert all(0 <= a.at(i) < 1 for i in range(200))
