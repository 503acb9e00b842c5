import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cuarl.policy.inputs import Row
from cuarl.policy.load import load_policy
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.score import Scorer, Scores
from cuarl.policy.spec import ModelSpec
from tests.unit.policy.checkpointing import compute_layers_again
from tests.unit.policy.pictures import row, screen


def _plain(policy: QwenVLPolicy, r: Row, temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities (T, V) at the answer's positions by the model's own forward, one row alone, nothing cached."""
    ids = torch.tensor([[*r.prompt_ids, *r.answer_ids]])
    extra = {}
    if r.screenshots:
        grids = [policy.images.grid(s.width, s.height) for s in r.screenshots]
        extra = {
            "pixel_values": policy.images.patches(r.screenshots),
            "image_grid_thw": torch.tensor([[1, g.rows, g.cols] for g in grids]),
        }
    with torch.no_grad():
        logits = policy.base(input_ids=ids, mm_token_type_ids=(ids == policy.special.image).int(), **extra).logits[0]
    at = logits[len(r.prompt_ids) - 1 : -1] / temperature
    at[:, list(policy.special.suppressed)] = -torch.inf
    return at.log_softmax(-1)


def _rows(policy: QwenVLPolicy) -> list[Row]:
    """One, two and no pictures of several sizes, with answers of several lengths."""
    return [
        row(policy, "turn on wifi", [screen(1, 280, 140)], [40, 41, 42, 43]),
        row(policy, "hello", [screen(2, 140, 280), screen(3, 140, 140)], [50]),
        row(policy, "open the settings now", [], [60, 61]),
    ]


def _score(policy: QwenVLPolicy, rows: list[Row], temperature: float = 1.0, **how: str) -> Scores:
    with torch.no_grad():
        return Scorer(policy)(policy.collate(rows, **how), temperature)  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_scores_equal_the_models_own_forward(policy: QwenVLPolicy, temperature: float) -> None:
    rows = _rows(policy)
    scores = _score(policy, rows, temperature)
    for i, r in enumerate(rows):
        expected = _plain(policy, r, temperature)
        n = len(r.answer_ids)
        assert (scores.logprobs[i, :n] - expected[range(n), list(r.answer_ids)]).abs().max() < 1e-4
        entropy = torch.special.entr(expected.exp()).sum(-1)
        assert (scores.entropy[i, :n] - entropy).abs().max() < 1e-4
        assert not scores.logprobs[i, n:].any() and not scores.entropy[i, n:].any()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_c23_scores_depend_on_neither_batch_nor_order_nor_side(
    policy: QwenVLPolicy, side: str, order: tuple[int, ...]
) -> None:
    rows = _rows(policy)
    together = _score(policy, [rows[i] for i in order], padding=side)
    for at, i in enumerate(order):
        alone = _score(policy, [rows[i]])
        n = len(rows[i].answer_ids)
        assert (together.logprobs[at, :n] - alone.logprobs[0]).abs().max() < 1e-4


def _group(policy: QwenVLPolicy) -> list[Row]:
    """Attempts that share prompts, among them one that does not, and one that is cut off at once."""
    first, second = [screen(1)], [screen(2)]
    answers = [[40, 41, 42], [40, 44], [45]]
    return [row(policy, "go", first, a) for a in answers] + [row(policy, "go there", second, a) for a in answers[:2]]


def test_shared_prompts_are_encoded_once(qwen3: QwenVLPolicy) -> None:
    inputs = qwen3.collate(_group(qwen3))
    assert len(inputs.prompt_ids) == 2
    assert inputs.prompt_of.tolist() == [0, 0, 0, 1, 1]


def _gradients(policy: QwenVLPolicy, rows: list[Row], setting: Callable[[], None] = lambda: None) -> torch.Tensor:
    policy.model.zero_grad()
    policy.model.train()
    setting()
    scores = Scorer(policy)(policy.collate(rows))
    (scores.logprobs.sum() + 0.1 * scores.entropy.sum()).backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])


def test_gradients_of_shared_prompts_equal_those_of_rows_alone(adapted: QwenVLPolicy) -> None:
    rows = _group(adapted)
    together = _gradients(adapted, rows)
    alone = sum((_gradients(adapted, [r]) for r in rows), torch.zeros(()))
    assert together.abs().max() > 1e-2
    assert (together - alone).abs().max() < 1e-4


@pytest.mark.parametrize("reentrant", [False, True])
def test_c33_gradients_are_the_same_with_gradient_checkpointing(adapted: QwenVLPolicy, reentrant: bool) -> None:
    rows = _group(adapted)
    expected = _gradients(adapted, rows)
    adapted.model.enable_input_require_grads()

    def checkpointed() -> None:
        compute_layers_again(adapted.base, reentrant=reentrant)

    assert (_gradients(adapted, rows, checkpointed) - expected).abs().max() < 1e-5


def test_pieces_of_logits_give_the_same_gradients(adapted: QwenVLPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _gradients(adapted, _group(adapted))
    monkeypatch.setattr("cuarl.policy.qwen_vl.score._LOGITS_AT_ONCE", 2 * len(adapted.tokenizer))
    assert (_gradients(adapted, _group(adapted)) - expected).abs().max() < 1e-5


def test_a_trained_vision_tower_gets_gradients_and_keeps_no_features(qwen3_folder: Path) -> None:
    policy = load_policy(ModelSpec(model=str(qwen3_folder), train="full", train_vision=True))
    frozen = load_policy(ModelSpec(model=str(qwen3_folder)))
    rows = _rows(policy)
    scores = Scorer(policy)(policy.collate(rows))
    assert (scores.logprobs - _score(frozen, rows).logprobs).abs().max() < 1e-5
    scores.logprobs.sum().backward()
    assert policy.vision.visual.patch_embed.proj.weight.grad.abs().max() > 0  # type: ignore[union-attr,operator]
    assert len(policy.vision.cache) == 0


def test_eager_attention_gives_the_same_scores(qwen3: QwenVLPolicy, qwen3_folder: Path) -> None:
    eager = load_policy(ModelSpec(model=str(qwen3_folder), attention="eager"))
    for rows in (_rows(qwen3), _group(qwen3)):
        assert (_score(eager, rows).logprobs - _score(qwen3, rows).logprobs).abs().max() < 1e-5


def test_each_row_may_have_a_temperature_of_its_own(qwen3: QwenVLPolicy) -> None:
    rows = _rows(qwen3)
    mixed = Scorer(qwen3)(qwen3.collate(rows), torch.tensor([0.5, 2.0, 0.0]))
    for i, t in enumerate([0.5, 2.0, 1.0]):  # greedy samples record the probabilities at 1
        assert torch.allclose(mixed.logprobs[i], _score(qwen3, rows, t).logprobs[i], atol=1e-6)


def test_the_reference_is_the_base_and_the_adapter_comes_back_after_an_error(adapted: QwenVLPolicy) -> None:
    rows = _rows(adapted)
    own = _score(adapted, rows).logprobs
    with pytest.raises(ZeroDivisionError), adapted.reference():
        reference = _score(adapted, rows).logprobs
        raise ZeroDivisionError
    base = _plain(adapted, rows[0])
    with adapted.reference():
        base = _plain(adapted, rows[0])
    assert (reference[0] - base[range(4), list(rows[0].answer_ids)]).abs().max() < 1e-4
    assert (own - reference).abs().max() > 1e-3
    assert torch.equal(_score(adapted, rows).logprobs, own)


def test_rows_without_answers_are_refused(qwen3: QwenVLPolicy) -> None:
    with pytest.raises(ValueError, match="no answer to score"):
        _score(qwen3, [row(qwen3, "go", [], [])])


def test_a_row_whose_pictures_do_not_fit_its_tokens_is_refused(qwen3: QwenVLPolicy) -> None:
    good = row(qwen3, "go", [screen(1)], [40])
    bad = Row(good.prompt_ids, (screen(1, 128, 96),), good.answer_ids)
    with pytest.raises(ValueError, match="row 1 has 6 image tokens, but its 1 pictures need 12"):
        qwen3.collate([good, bad])
