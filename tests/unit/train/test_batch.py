import itertools
import random
from dataclasses import replace

import pytest

from cuarl.errors import TrainError
from cuarl.train.batch import (
    BatchConfig,
    lane_batches,
    micro_batches,
    policy_updates,
    share_of_rank,
    supervised_updates,
    token_weights,
)
from cuarl.train.rows import TokenRow

from .episodes import group, sampled, trajectory

CENTRED = BatchConfig(advantage="none")
EOS, OTHER_EOS, PAD = 151645, 151643, 151643


def rows_of(lengths, episodes=None):
    episodes = episodes or range(len(lengths))
    return [
        TokenRow(e, f"e{e}", (1,) * (n - 1), (2,), (), (-1.0,), (1.0,), 1.0)
        for n, e in zip(lengths, episodes, strict=True)
    ]


def test_c21_each_turn_is_a_row_with_the_ids_as_sampled_and_the_advantage_of_its_episode():
    good = trajectory(1.0, (7, 8), (9,), episode="good")
    (update,) = policy_updates([group(good, trajectory(0.0, (5, 5, 5), episode="bad"))], CENTRED)
    assert [(r.name, r.token_ids, r.advantages) for r in update] == [
        ("good#0", (7, 8), (0.5, 0.5)),
        ("good#1", (9,), (0.5,)),
        ("bad#0", (5, 5, 5), (-0.5, -0.5, -0.5)),
    ]
    assert all(r.prompt_ids == (1, 2, 3) and r.logprobs == (-0.5,) * len(r.token_ids) for r in update)
    assert {r.weight for r in update} == {1 / 6}


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        pytest.param((5, 6, 7), "length", id="a cut-off answer gets no end token"),
        pytest.param((5, 6, EOS), "eos", id="the end token that was sampled is learnt"),
        pytest.param((5, 6, OTHER_EOS), "eos", id="also where it is the padding token"),
    ],
)
def test_c27_trained_ids_are_the_recorded_ones_whatever_the_end_token(answer, stop):
    assert OTHER_EOS == PAD
    episode = trajectory(1.0, sampled(answer, stop=stop), episode="a")
    (update,) = policy_updates([group(episode, 0.0)], CENTRED)
    assert update[0].token_ids == answer


def test_c30_a_missing_reward_leaves_rows_and_denominators():
    lost = trajectory(None, (1, 2, 3, 4), episode="lost")
    (update,) = policy_updates([group(1.0, 0.0, lost)], CENTRED)
    assert [r.name for r in update] == ["g/0#0", "g/1#0"]
    assert {r.weight for r in update} == {1 / 4}


def test_groups_without_signal_are_dropped_but_stay_in_the_denominator():
    groups = [group(1.0, 0.0, group_id="mixed"), group(1.0, 1.0, group_id="solved")]
    (dropped,) = policy_updates(groups, CENTRED)
    (kept,) = policy_updates(groups, CENTRED, keep_flat=True)
    assert {r.name.split("/")[0] for r in dropped} == {"mixed"}
    assert len(kept) == 4
    assert {r.weight for r in dropped} == {r.weight for r in kept} == {1 / 8}


@pytest.mark.parametrize(("ahead", "rows"), [(False, 2), (True, 4)])
def test_what_a_forward_pass_says_is_asked_once_and_of_no_more_rows_than_need_be(ahead, rows):
    groups, asked = [group(1.0, 0.0, group_id="mixed"), group(1.0, 1.0, group_id="solved")], []

    def precompute(rows):
        asked.append(rows)
        return [replace(row, reference=row.logprobs, proximal=(-1.0, -2.0)) for row in rows]

    config = BatchConfig(advantage="none", num_epochs=2, kl_coef=0.1 if ahead else 0.0)
    updates = policy_updates(groups, config, precompute=precompute)
    assert [len(some) for some in asked] == [rows]
    assert [{r.proximal for r in update} for update in updates] == [{(-1.0, -2.0)}] * 2
    assert {r.advantages for r in updates[0]} == {(0.5, 0.5), (-0.5, -0.5)} and {r.weight for r in updates[0]} == {
        1 / 8
    }


def test_c28_a_batch_without_any_signal_has_no_rows():
    (update,) = policy_updates([group(0.1, 0.1, 0.1), group(None, None)], CENTRED)
    assert update == ()


@pytest.mark.parametrize(("mask", "tokens"), [(False, 10), (True, 4)])
def test_c31_cut_off_answers_leave_the_denominator_when_masked(mask, tokens):
    cut = trajectory(0.0, sampled((1,) * 6, stop="length"), episode="cut")
    whole = trajectory(1.0, (1,) * 4, episode="whole")
    (update,) = policy_updates([group(whole, cut)], BatchConfig(advantage="none", mask_truncated=mask))
    assert update[0].weight == 1 / tokens
    # a loss of 1 at each kept token: 4/4 rather than 4/10
    assert sum(len(r.token_ids) * r.weight for r in update) == pytest.approx(1.0)


def test_c31_nothing_is_trained_when_all_answers_were_cut_off_and_masked():
    cut = [trajectory(r, sampled((1, 2), stop="length"), episode=str(r)) for r in (0.0, 1.0)]
    (update,) = policy_updates([group(*cut)], BatchConfig(mask_truncated=True))
    assert update == ()


def test_b38_an_attempt_of_which_nothing_is_trained_still_counts_in_the_baseline():
    cut = trajectory(0.0, sampled((1, 2), stop="length"), episode="cut")
    (update,) = policy_updates([group(1.0, 0.0, cut)], BatchConfig(advantage="none", mask_truncated=True))
    assert [(r.name, pytest.approx(r.advantages[0])) for r in update] == [("g/0#0", 2 / 3), ("g/1#0", -1 / 3)]


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        pytest.param(None, "not sampled from a policy", id="scripted"),
        pytest.param(sampled(exact=False), "no exact token ids", id="ids from text"),
        pytest.param(sampled(prompt=()), "no exact token ids", id="text endpoint"),
        pytest.param(sampled(logprobs=None), "no logprobs", id="no logprobs"),
        pytest.param(sampled(logprobs=(-1.0, float("nan"))), "not a finite number", id="broken logprobs"),
        pytest.param(sampled(temperature=0.0), "greedily", id="greedy"),
    ],
)
def test_c21_a_turn_that_is_not_exact_is_refused_by_name(turn, why):
    with pytest.raises(TrainError, match=why) as error:
        policy_updates([group(trajectory(1.0, (7,), turn, episode="e17"), 0.0)], CENTRED)
    assert "turn 1" in error.value.what
    assert "episode e17, policy p" in str(error.value)


def test_supervised_rows_need_ids_but_no_logprobs():
    (update,) = supervised_updates([group(trajectory(1.0, sampled(logprobs=None), (9,)))], BatchConfig())
    assert [(r.token_ids, r.weight) for r in update] == [((7, 8), 1 / 3), ((9,), 1 / 3)]
    with pytest.raises(TrainError, match="no exact token ids"):
        supervised_updates([group(trajectory(1.0, sampled(exact=False)))], BatchConfig())


def test_what_counts_more_weighs_more_and_all_weights_sum_up_to_what_they_did():
    shown = [
        group(trajectory(1.0, (7, 8), episode="a"), group_id="g"),
        group(trajectory(1.0, (9,), episode="b"), group_id="h"),
    ]
    (update,) = supervised_updates(shown, BatchConfig(), {"a": 3.0})
    assert [r.weight for r in update] == pytest.approx([3 / 7, 1 / 7])
    (update,) = supervised_updates(shown, BatchConfig(reduction="sequence"), {"a": 3.0})
    assert [r.weight for r in update] == pytest.approx([3 / 8, 1 / 4])
    (update,) = supervised_updates(shown, BatchConfig(), {"b": 0.0})
    assert [(r.token_ids, r.weight) for r in update] == [((7, 8), 0.5)], "what counts nothing is not computed"


def test_substeps_share_the_groups_out_in_turn_and_each_has_its_own_denominator():
    groups = [group(1.0, 0.0, group_id=f"g{i}") for i in range(5)]
    first, second = policy_updates(groups, BatchConfig(num_substeps=2))
    assert [r.name[:2] for r in first] == ["g0", "g0", "g2", "g2", "g4", "g4"]
    assert [r.name[:2] for r in second] == ["g1", "g1", "g3", "g3"]
    assert (first[0].weight, second[0].weight) == (1 / 12, 1 / 8)


def slow_reduction(losses_ET, reduction, constant):
    """losses_ET[e][t] of each token, reduced as the papers write it."""
    if reduction == "token":
        flat = [x for episode in losses_ET for x in episode]
        return sum(flat) / len(flat)
    if reduction == "sequence":
        return sum(sum(e) / len(e) for e in losses_ET) / len(losses_ET)
    return sum(sum(e) / constant for e in losses_ET) / len(losses_ET)


@pytest.mark.parametrize("reduction", ["token", "sequence", "constant"])
def test_weights_give_the_reduction_over_episodes_of_several_turns(reduction):
    rng = random.Random(0)
    losses_ET = [[[rng.random() for _ in range(rng.randint(1, 5))] for _ in range(rng.randint(1, 4))] for _ in range(6)]
    rows = [
        TokenRow(e, "", (1,), (2,) * len(turn), (), None, (1.0,) * len(turn), 1.0)
        for e, turns in enumerate(losses_ET)
        for turn in turns
    ]
    weights = token_weights(rows, reduction, constant_tokens=7)
    got = sum(w * sum(turn) for w, turn in zip(weights, itertools.chain(*losses_ET), strict=True))
    flat = [list(itertools.chain(*turns)) for turns in losses_ET]
    assert got == pytest.approx(slow_reduction(flat, reduction, 7), abs=1e-12)


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_c38_ranks_share_all_rows_without_overlap_and_keep_episodes_whole(world):
    rows = rows_of([10, 3, 4, 9, 2, 2], episodes=[0, 0, 1, 2, 3, 3])
    shares = [share_of_rank(rows, rank, world, pack=False) for rank in range(world)]
    assert sorted(id(r) for share in shares for r in share) == sorted(id(r) for r in rows)
    owners = {r.episode: {i for i, share in enumerate(shares) if r in share} for r in rows}
    assert all(len(ranks) == 1 for ranks in owners.values())
    if world == 2:  # by hand: 13 | 9, 9 + 4, 13 | 13 + 4
        assert [sum(map(len, share)) for share in shares] == [13 + 4, 9 + 4]


def test_micro_batches_keep_every_row_within_the_budget():
    rng = random.Random(0)
    rows = rows_of([rng.randint(1, 90) for _ in range(200)])
    batches = micro_batches(rows, 256, pack=False)
    assert all(len(b) * max(map(len, b)) <= 256 for b in batches)
    assert sorted(id(r) for b in batches for r in b) == sorted(id(r) for r in rows)
    padded = sum(len(b) * max(map(len, b)) for b in batches)
    assert sum(map(len, rows)) / padded > 0.9
    assert max(map(len, batches[0])) == max(map(len, rows))


def test_a_row_beyond_the_budget_goes_alone():
    assert [[len(r) for r in b] for b in micro_batches(rows_of([10, 300, 10]), 64, pack=False)] == [[300], [10, 10]]


def test_rows_with_the_same_prompt_share_a_micro_batch():
    prompts = [(1, 2, 3), (4, 5, 6)] * 4
    rows = [TokenRow(i, "", p, (7,) * (1 + i % 3), (), None, 1.0, 1.0) for i, p in enumerate(prompts)]
    assert [{r.prompt_ids for r in b} for b in micro_batches(rows, 24, pack=False)] == [{(1, 2, 3)}, {(4, 5, 6)}]


def test_in_lanes_a_shared_prompt_counts_once_and_passes_stay_within_the_budget():
    prompts = [tuple(range(n, n + 20)) for n in range(3)]
    rows = [TokenRow(i, "", prompts[i % 3], (7,) * 4, (), None, 1.0, 1.0) for i in range(24)]
    batches = lane_batches(rows, 80, pack=False)
    assert sorted(r.episode for b in batches for r in b) == list(range(24))
    assert [len({r.prompt_ids for r in b}) for b in batches] == [2, 2, 1]
    computed = [20 * len({r.prompt_ids for r in b}) + sum(len(r.token_ids) for r in b) for b in batches]
    assert max(computed) <= 80 and sum(computed) < 24 * 24
    assert [len(b) for b in lane_batches(rows, 10, pack=False)] == [1] * 24, "what is longer goes alone"


def test_micro_batches_do_not_depend_on_the_order_of_the_rows():
    rng = random.Random(0)
    rows = [
        TokenRow(i, "", tuple(rng.choices(range(9), k=rng.randint(1, 4))), (i,), (), None, 1.0, 1.0) for i in range(30)
    ]
    shuffled = rng.sample(rows, k=len(rows))
    assert [len(b) for b in micro_batches(rows, 16, pack=False)] == [
        len(b) for b in micro_batches(shuffled, 16, pack=False)
    ]
