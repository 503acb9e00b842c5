"""Training on turns that extend one another: packed into one sequence or apart, it is the same loss."""

import random
from functools import cache

import pytest
import torch

from cuarl.policy.inputs import Row
from cuarl.policy.score import Scorer
from cuarl.train.batch import Batch, BatchConfig, micro_batches, policy_updates, sequences, share_of_rank
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.rows import TokenRow
from cuarl.train.schedule import OptimConfig
from cuarl.train.value import CriticConfig

from .episodes import group, sampled, trajectory
from .policies import SPECIAL, WORDS, screens, tiny_policy

REWARDS = [(1, 0, 0, 1), (0, 0, 1), (0, None, 1)]


def conversed(policy, rewards_G, *, turns=4, seed=0):
    """Episodes whose prompts hold all that came before, on one first screen a group, with this policy's logprobs."""
    rng = random.Random(seed)
    words, pictures = range(len(SPECIAL), len(SPECIAL) + WORDS), screens(6, seed)

    def asked(past=None, first=None):
        shown = first or rng.choice(pictures)
        ids = (*rng.choices(words, k=3), policy.special.image, policy.special.image, *rng.choices(words, k=2))
        before, seen = ((*past.prompt_ids, *past.answer_ids), past.screenshots) if past else ((), ())
        return (*before, *ids), (*seen, shown)

    def episode(opening):
        rows, prompt = [], opening
        for _ in range(rng.randint(1, turns)):
            rows.append(Row(*prompt, (*rng.choices(words, k=rng.randint(1, 4)), policy.special.end_of_turn)))
            prompt = asked(rows[-1])
        return rows

    def recorded(row):
        with torch.no_grad():
            known = Scorer(policy).eval()(policy.collate([row])).logprobs[0].tolist()
        return sampled(row.answer_ids, row.prompt_ids, images=tuple(s.ref for s in row.screenshots), logprobs=known)

    groups = []
    for g, rewards in enumerate(rewards_G):
        opening = asked()
        episodes = [trajectory(r, *map(recorded, episode(opening)), episode=f"g{g}/{i}") for i, r in enumerate(rewards)]
        groups.append(group(*episodes, group_id=f"g{g}"))
    return Batch(tuple(groups), {s.digest: s for s in pictures})


def gradient_and_metrics(batch_config, loss, batch, *, checkpointing=False, seed=0):
    policy = tiny_policy(seed=seed)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for n, p in policy.model.named_parameters():
            if "lora_B" in n:
                torch.nn.init.normal_(p, std=0.05)
    config = LearnerConfig(
        batch=batch_config,
        loss=loss,
        optim=OptimConfig(learning_rate=1e-2, max_grad_norm=1e9),
        gradient_checkpointing=checkpointing,
    )
    learner = Learner(policy, config)
    learner.begin_step(1)
    metrics = learner.update(batch, 1)
    state = learner.state()["optimizer"]["state"]
    return torch.cat([s["exp_avg"].flatten() for s in state.values()]) / 0.1, metrics


@cache
def conversations():
    """The same for all tests, which only read them."""
    return conversed(tiny_policy(), REWARDS)


def both(batch_config, loss, **how):
    return [
        gradient_and_metrics(batch_config.model_copy(update={"pack": pack}), loss, conversations(), **how)
        for pack in (False, True)
    ]


def assert_same(apart, packed):
    (expected, plain), (gradient, metrics) = apart, packed
    assert expected.abs().max() > 1e-3
    assert torch.allclose(gradient, expected, atol=1e-6)
    assert metrics["train/packed_frac"] > 0.5
    assert plain["train/packed_frac"] == 0
    differing = ("train/packed_frac", "train/padding_frac")
    assert {k: v for k, v in metrics.items() if k not in differing} == pytest.approx(
        {k: v for k, v in plain.items() if k not in differing}, rel=1e-4, abs=1e-5
    )


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("max_tokens", [1, 150, 100_000])
@pytest.mark.parametrize("reduction", ["token", "turn", "sequence", "constant"])
def test_loss_and_gradient_are_equal_for_every_reduction(reduction, max_tokens, checkpointing):
    config = BatchConfig(reduction=reduction, constant_tokens=50, max_tokens=max_tokens)
    assert_same(*both(config, LossConfig(), checkpointing=checkpointing))


@pytest.mark.parametrize(
    ("batch", "loss"),
    [
        pytest.param({"reduction": "turn"}, {"ratio": "answer", "clip_low": 0.01, "clip_high": 0.01}, id="gspo"),
        pytest.param({}, {"surrogate": "weights", "decoupled": True, "importance_cap": 2.0}, id="cispo, decoupled"),
        pytest.param({}, {"kl_penalty_coef": 0.1, "entropy_coef": 0.01}, id="kl and entropy in the loss"),
        pytest.param({"kl_coef": 0.1}, {"kl_penalty_coef": 0.1, "kl_in": "reward"}, id="kl in the reward"),
        pytest.param({"baseline": "critic", "critic": CriticConfig(level="token", trunk="shared")}, {}, id="critic"),
        pytest.param({"baseline": "critic"}, {}, id="critic of turns"),
        pytest.param({"credit": "screen"}, {}, id="credit by screen"),
        pytest.param({"num_substeps": 2, "num_epochs": 2}, {}, id="several updates"),
    ],
)
def test_it_is_equal_for_every_loss(batch, loss):
    assert_same(*both(BatchConfig(**batch), LossConfig(**loss)))


def test_each_token_of_an_episode_is_computed_once():
    batch = conversations()
    (update,) = policy_updates(batch.groups, BatchConfig(advantage="none"))
    packed = sequences(update, pack=True)
    assert sorted(len(s) for s in packed) == sorted(
        sum(r.episode == e for r in update) for e in {r.episode for r in update}
    )
    assert sum(len(s[0]) for s in packed) < 0.6 * sum(map(len, update))


def test_sequences_are_never_cut_and_cost_what_their_longest_turn_does():
    rows = [chained(e, t) for e in range(6) for t in range(3)]
    batches = micro_batches(rows, 2 * len(rows[2]), pack=True)
    assert [len(b) for b in batches] == [6, 6, 6]
    assert all(len({r.episode for r in b}) == 2 for b in batches)
    assert sorted(r.place for b in batches for r in b) == [(e, t) for e in range(6) for t in range(3)]
    # work is what is computed: four short episodes weigh as much as two turns of the long ones
    shares = [share_of_rank(rows, r, 2, pack=True) for r in range(2)]
    assert [len(s) for s in shares] == [9, 9]


def chained(episode, turn):
    prompt = sum((((100 + episode, t), (7, 8)) for t in range(turn)), ()) if turn else ()
    ids = tuple(i for part in prompt for i in part)
    return TokenRow(episode, "", (*ids, 100 + episode, turn), (7, 8), (), None, (1.0, 1.0), 1.0, turn=turn)
