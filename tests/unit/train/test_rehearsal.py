"""Imitation that also rehearses keeps what it would unlearn."""

import pytest

from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.schedule import OptimConfig

from .episodes import group, sampled, trajectory
from .policies import SPECIAL, WORDS, tiny_policy

END = SPECIAL.index("<|im_end|>")


def lesson(name, first, offset):
    """Answers by what the prompt ends with: the word ``offset`` further, each a group of its own."""
    word = len(SPECIAL)
    return tuple(
        group(
            trajectory(
                1.0,
                sampled((word + (i + offset) % WORDS, END), (word + first, word + i), logprobs=None),
                episode=f"{name}{i}",
            ),
            group_id=f"{name}{i}",
        )
        for i in range(8)
    )


def pupil(steps):
    config = LearnerConfig(
        objective="imitation", batch=BatchConfig(max_tokens=400), optim=OptimConfig(learning_rate=1e-2), max_steps=steps
    )
    return Learner(tiny_policy(full=True), config)


def nll(learner, groups):
    """Of ``groups``, by an update whose gradient is taken back: its learning rate has fallen to nothing."""
    told = Learner(
        learner.policy,
        learner.config.model_copy(update={"optim": OptimConfig(learning_rate=1e-30)}),
    )
    return told.update(Batch(groups, {}), 1)["sft/nll"]


SKILLS, TASKS = lesson("skill", 0, 5), lesson("task", 1, 17)


def taught():
    learner = pupil(200)
    for step in range(1, 41):
        learner.begin_step(step)
        learner.update(Batch(SKILLS, {}), step)
    return learner


def test_what_is_rehearsed_is_kept_and_reported_by_itself():
    kept, lost = taught(), taught()
    before = nll(kept, SKILLS)
    assert before < 0.3
    for step in range(41, 81):
        for learner, rehearsal in ((kept, SKILLS), (lost, ())):
            learner.begin_step(step)
            found = learner.update(Batch(TASKS, {}, rehearsal=rehearsal), step)
            assert found["train/rows"] == 8 + len(rehearsal)
            assert ("rehearsal/nll" in found) == bool(rehearsal)
            if rehearsal:
                assert found["rehearsal/token_frac"] == 0.5
    assert nll(kept, TASKS) < 0.3 and nll(lost, TASKS) < 0.3, "both learn the tasks"
    assert nll(kept, SKILLS) < 0.3 and nll(lost, SKILLS) > 5 * before + 0.5, "one of them has unlearnt the skills"


def test_episodes_are_counted_without_what_is_rehearsed():
    learner = pupil(2)
    learner.begin_step(1)
    alone = pupil(2)
    alone.begin_step(1)
    both = learner.update(Batch(TASKS, {}, rehearsal=SKILLS), 1)
    assert both["sft/nll"] == pytest.approx(alone.update(Batch(TASKS, {}), 1)["sft/nll"], rel=1e-5)
    assert learner.episodes == len(TASKS)
    assert len(Batch(TASKS, {}, rehearsal=SKILLS).collected) == len(TASKS)
