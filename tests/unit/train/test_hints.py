"""Groups that an oracle led: how far, what is learnt from them, and what is not."""

import pytest
import torch

from cuarl.train.batch import Batch, BatchConfig, policy_updates
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.config import LearnerConfig
from cuarl.train.curriculum import CurriculumConfig
from cuarl.train.hints import Hints, failed_whole
from cuarl.train.learner import Learner
from cuarl.train.replay import ReplayConfig
from cuarl.train.rows import policy_rows
from cuarl.train.schedule import OptimConfig
from cuarl.trajectory import BY, BY_ORACLE

from .episodes import group, sampled, trajectory
from .policies import played, tiny_policy, weights


def led_by_oracle(t, turns, said=None):
    """``t`` with its first turns an oracle's: written, not sampled."""
    own = list(t.turns)
    for i in range(turns):
        written = own[i].sampled.model_copy(update={"logprobs": None, **({"token_ids": said} if said else {})})
        own[i] = own[i].model_copy(update={"sampled": written})
    noted = {str(i): {BY: BY_ORACLE} for i in range(turns)}
    return t.model_copy(update={"turns": tuple(own), "info": {"decisions": noted}})


def led_group(rewards, *, turns=1, of=3, name="g.hint"):
    return group(
        *(
            led_by_oracle(trajectory(r, *[(7, 8)] * of, episode=f"{name}/{i}", group=name), turns)
            for i, r in enumerate(rewards)
        ),
        group_id=name,
    )


def test_a_lead_doubles_where_it_does_not_help_and_shortens_as_success_grows():
    hints, seen = Hints(2), []
    for rewards in ((0, 0), (0, 0), (0, 1), (1, 1), (0, 0, 0, 1), (0, 1)):
        seen.append(hints.length("t"))
        hints.observe([led_group(rewards, turns=seen[-1], of=10)])
    # half of the attempts are enough, a quarter is not
    assert seen == [2, 4, 8, 7, 6, 6] and hints.length("t") == 5
    assert hints.length("another") == 4, "what the first led group came to"
    for _ in range(9):
        hints.observe([led_group((1, 1), turns=hints.length("t"), of=10)])
    assert hints.length("t") == 1, "a lead of nothing would be no lead"


def test_no_lead_is_longer_than_the_way():
    hints = Hints(16)
    hints.observe([led_group((0, 0), turns=3, of=5)])
    assert hints.length("t") == 3, "the oracle had come to its end"
    hints.observe([led_group((0, 0), turns=3, of=5)])
    assert hints.length("t") == 6
    hints.observe([led_group((1, 1), turns=3, of=5)])
    assert hints.length("t") == 2


def test_tasks_that_were_never_led_begin_where_others_have_come_to():
    """Once a step, however many tasks are new in it."""

    def led(task, rewards, turns):
        return led_group(rewards, turns=turns, of=20).model_copy(update={"task_id": task})

    hints = Hints(2)
    hints.observe([led(task, (0, 0), 2) for task in "abc"])
    assert [hints.length(task) for task in "abcd"] == [4, 4, 4, 4]
    hints.observe([led("a", (0, 0), 4), led("d", (0, 1), 4), led("e", (0, 0), 4)])
    assert [hints.length(task) for task in "adef"] == [8, 3, 8, 4], (
        "a quarter of the new ones is not enough to change it"
    )
    hints.observe([led("f", (1, 1), 4), led("g", (0, 0), 4)])
    assert [hints.length(task) for task in "fgh"] == [3, 8, 3]
    again = Hints(2)
    again.restore(hints.state())
    assert again.state() == hints.state() and again.length("h") == 3


def test_groups_without_a_verdict_change_nothing_and_figures_are_their_own():
    hints = Hints(2)
    told = hints.observe([led_group((None, None), turns=2)])
    assert hints.length("t") == 2 and told == {"hints/groups": 1.0, "hints/turns_mean": 2.0}
    told = hints.observe([led_group((0, 1, 1, 1), turns=2), led_group((0, None), turns=1)])
    assert told["hints/success_rate"] == pytest.approx(3 / 5) and told["hints/groups"] == 2
    assert told["hints/turns_mean"] == pytest.approx(10 / 6)
    assert hints.observe([]) == {"hints/groups": 0.0}


def test_a_group_has_failed_whole_if_nothing_in_it_teaches():
    assert failed_whole(group(0, 0, None)) and failed_whole(group(0.5, 0.5))
    assert not failed_whole(group(0, 1)) and not failed_whole(group(None, None))
    assert not failed_whole(group(0, 0.5)), "without a success, but the rewards say which was better"
    done = trajectory(1).model_copy(update={"reward": 0.0})
    assert failed_whole(group(done, done)), "done, but not rewarded, as where nobody claimed it"


def test_led_turns_are_in_no_row_and_a_turn_that_was_not_sampled_still_is_refused():
    rows = policy_rows([led_group((0, 1), turns=2, of=4)])
    assert [row.place for row in rows] == [(0, 2), (0, 3), (1, 2), (1, 3)]
    (update,) = policy_updates([led_group((0, 1), turns=2, of=4)], BatchConfig())
    assert {row.turn for row in update} == {2, 3}
    assert sum(row.weight * len(row.token_ids) for row in update) == pytest.approx(1)
    bare = trajectory(1, sampled().model_copy(update={"logprobs": None}))
    with pytest.raises(Exception, match="has no logprobs"):
        policy_rows([group(bare)])


def batch_of(policy, *, said=None, led_rewards=(1, 0), with_failures=True):
    """A group that teaches, one of failures, and the same led, whose oracle may have ``said`` anything."""
    whole = played(policy, [(1, 0, 0), (0, 0), led_rewards], turns=3, seed=4)
    first, failed, led = whole.groups
    led = led.model_copy(update={"group_id": "g1.hint", "task_id": failed.task_id})
    attempts = tuple(led_by_oracle(t, min(1, len(t.turns) - 1), said) for t in led.trajectories)
    led = led.model_copy(update={"trajectories": attempts})
    if not with_failures:
        return Batch((first, led), whole.pictures)
    return Batch((first, failed), whole.pictures, led={failed.group_id: led})


def learner_of(policy, **config):
    return Learner(policy, LearnerConfig(hint_turns=2, optim=OptimConfig(learning_rate=1e-2), **config))


def after(batch_from, **config):
    policy = tiny_policy()
    learner = learner_of(policy, **config)
    learner.begin_step(1)
    told = learner.update(batch_from(policy), 1)
    return weights(policy), told, learner


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_what_the_oracle_said_is_in_no_loss_and_the_led_group_stands_for_the_failures():
    learnt, told, learner = after(batch_of)
    assert same(learnt, after(lambda p: batch_of(p, said=(9, 10, 11)))[0])
    assert same(learnt, after(lambda p: batch_of(p, with_failures=False))[0])
    assert not same(learnt, after(lambda p: Batch(batch_of(p).groups, batch_of(p).pictures))[0])
    assert learner.episodes == 5, "three and two; led attempts are counted by themselves"
    assert told["hints/groups"] == 1 and told["hints/success_rate"] == 0.5
    discarded = after(
        lambda p: Batch(batch_of(p).groups[:1], batch_of(p).pictures, batch_of(p).groups[1:], led=batch_of(p).led)
    )
    assert same(learnt, discarded[0]), "also where dynamic sampling has set the failures apart"


def test_a_led_group_that_teaches_nothing_leaves_the_failures_where_they_are():
    learnt, told, _ = after(lambda p: batch_of(p, led_rewards=(0, 0)))
    batch = batch_of(tiny_policy(), led_rewards=(0, 0))
    assert batch.learnt == batch.groups and told["hints/success_rate"] == 0
    assert same(learnt, after(lambda p: Batch(batch.groups, batch.pictures))[0])


def test_curriculum_and_replay_do_not_know_of_led_groups():
    config = {"curriculum": CurriculumConfig(), "replay": ReplayConfig(per_task=2)}
    _, told, learner = after(batch_of, **config)
    assert learner.curriculum.state()["rates"] == {"t": [pytest.approx(1 / 3), 0.0]}
    assert told["replay/size"] == 1 and told["replay/used"] == 0


def test_lengths_survive_a_checkpoint(tmp_path):
    learner = learner_of(tiny_policy())
    learner.begin_step(1)
    learner.update(batch_of(learner.policy), 1)
    assert learner.hints.length("t") == 1
    about = About(run="mine", base_model="org/model")
    checkpoints = Checkpoints(tmp_path, learner, about)
    checkpoints.save(1)
    checkpoints.commit(1, {})
    again = learner_of(tiny_policy())
    assert Checkpoints(tmp_path, again, about).restore() == 1
    assert again.hints.length("t") == 1 and again.hints.state() == learner.hints.state()
