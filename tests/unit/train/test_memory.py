"""What a learner remembers between steps, and that an interrupted run of each algorithm equals one that was not."""

import io

import pytest
import torch

from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.curriculum import Curriculum, CurriculumConfig
from cuarl.train.gigpo import AnchorCredit
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.replay import Replay, ReplayConfig
from cuarl.train.schedule import OptimConfig
from cuarl.train.value import CriticConfig

from .episodes import group
from .policies import played, tiny_policy, weights

CONFIGS = {
    "grpo, kl in the reward": {"batch": {"kl_coef": 0.1}, "loss": {"kl_penalty_coef": 0.1, "kl_in": "reward"}},
    "gspo": {"loss": {"ratio": "answer"}, "batch": {"reduction": "turn"}},
    "cispo, decoupled": {"loss": {"surrogate": "weights", "decoupled": True, "importance_cap": 2.0}},
    "rloo": {"batch": {"baseline": "leave-one-out"}},
    "reinforce++": {"batch": {"baseline": "batch"}},
    "gigpo": {"batch": {"credit": "anchor", "anchor": AnchorCredit()}},
    "ppo": {"batch": {"baseline": "critic", "num_substeps": 2, "num_epochs": 2}},
    "ppo, shared trunk": {
        "batch": {"baseline": "critic", "critic": CriticConfig(level="token", trunk="shared", warmup_steps=1)}
    },
    "rejection": {"objective": "rejection"},
    "replay": {"replay": ReplayConfig(per_task=2)},
}


def learner_of(name, policy):
    fields = dict(CONFIGS[name])
    fields["batch"] = BatchConfig(**fields.get("batch", {}))
    fields["loss"] = LossConfig(**fields.get("loss", {}))
    return Learner(policy, LearnerConfig(optim=OptimConfig(learning_rate=1e-2), **fields))


def step(learner, batch, number):
    learner.begin_step(number)
    return learner.update(batch, number)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_run_that_is_interrupted_equals_one_that_was_not(name):
    policy = tiny_policy()
    batches = [played(policy, [(1, 0, 0), (0, 1)], seed=1), played(policy, [(0, 0, 0), (1, 0)], seed=2)]
    whole = learner_of(name, policy)
    step(whole, batches[0], 1)
    saved = io.BytesIO()
    torch.save(whole.state(), saved)
    between = {n: p.clone() for n, p in weights(policy).items()}
    metrics = step(whole, batches[1], 2)

    other = tiny_policy()
    resumed = learner_of(name, other)
    with torch.no_grad():
        for n, p in other.model.named_parameters():
            if n in between:
                p.copy_(between[n])
    saved.seek(0)
    resumed.restore(torch.load(saved, weights_only=True), 1)
    assert step(resumed, batches[1], 2) == metrics
    assert all(torch.equal(p, weights(other)[n]) for n, p in weights(policy).items())
    assert resumed.episodes == 10


def test_the_critic_learns_and_while_it_warms_up_the_policy_does_not():
    policy = tiny_policy()
    config = BatchConfig(baseline="critic", critic=CriticConfig(warmup_steps=30, learning_rate=1e-2))
    learner = Learner(policy, LearnerConfig(batch=config))
    batch = played(policy, [(1, 0), (1, 1)], seed=3)
    before = {n: p.clone() for n, p in weights(policy).items()}
    history = [step(learner, batch, n) for n in range(1, 31)]
    assert all(torch.equal(before[n], p) for n, p in weights(policy).items())
    assert history[0]["value/explained_variance"] == pytest.approx(0, abs=1e-6)
    assert history[-1]["value/explained_variance"] > 0.5
    step(learner, batch, 31)
    assert not all(torch.equal(before[n], p) for n, p in weights(policy).items())


def test_the_change_of_a_step_is_measured_after_it():
    policy = tiny_policy()
    learner = Learner(policy, LearnerConfig(compute_post_kl=True, optim=OptimConfig(learning_rate=1e-2)))
    batch = played(policy, [(1, 0)])
    first, second = step(learner, batch, 1), step(learner, batch, 2)
    assert first["policy/kl_post"] > 1e-6
    # the next step starts where this one ended
    assert second["policy/kl_sampler"] == pytest.approx(first["policy/kl_post"], rel=1e-3)


def failed_and_solved():
    policy = tiny_policy()
    return played(policy, [(1, 0)], seed=1), played(policy, [(0, 0, 0)], seed=2)


def test_a_kept_success_stands_in_for_one_failure_with_its_own_logprobs_and_pictures():
    solved, failed = failed_and_solved()
    replay = Replay(ReplayConfig(per_task=1))
    replay.remember(solved, 1)
    batch, used = replay.filled(failed, 2)
    kept = batch.groups[0].trajectories
    assert (used, len(kept), batch.groups[0].rewards) == (1, 3, [0, 0, 1])
    assert kept[-1].turns == solved.groups[0].trajectories[0].turns
    assert {i.digest for t in kept for turn in t.turns for i in turn.sampled.images} <= set(batch.pictures)
    assert replay.filled(solved, 2) == (solved, 0)


def test_old_successes_are_forgotten_and_others_survive_a_checkpoint():
    solved, failed = failed_and_solved()
    replay = Replay(ReplayConfig(per_task=1, max_age=3))
    replay.remember(solved, 1)
    again = Replay(replay.config)
    again.restore(replay.state())
    assert again.filled(failed, 4)[0].groups == replay.filled(failed, 4)[0].groups
    assert again.filled(failed, 5) == (failed, 0)


def rounds(curriculum, outcomes, count):
    """The tasks that come up in ``count`` draws, each failing or not as ``outcomes`` says."""
    seen = []
    for _ in range(count):
        (task,) = curriculum.choose(sorted(outcomes), 1)
        curriculum.observe([group(*outcomes[task], group_id=task).model_copy(update={"task_id": task})])
        seen.append(task)
    return seen


def test_a_task_that_keeps_failing_is_set_aside_and_comes_again():
    curriculum = Curriculum(CurriculumConfig(patience=2, cooldown=3))
    seen = rounds(curriculum, {"good": (1.0, 0.0), "bad": (0.0, 0.0)}, 14)
    # two rounds in which it fails, three without it, and so on
    assert [seen[:4].count("bad"), seen[4:7].count("bad")] == [2, 0]
    assert "bad" in seen[7:]
    alone = Curriculum(CurriculumConfig(patience=1))
    assert rounds(alone, {"bad": (0.0, 0.0)}, 5) == ["bad"] * 5


def test_pools_prefer_tasks_that_are_solved_now_and_then():
    curriculum = Curriculum(CurriculumConfig(kind="pools"))
    outcomes = {"learning": (1.0, 0.0), "solved": (1.0, 1.0), "unsolved": (0.0, 0.0)}
    seen = rounds(curriculum, outcomes, 300)
    shares = {task: seen.count(task) / 300 for task in outcomes}
    assert {task: curriculum.pool(task) for task in outcomes} == {task: task for task in outcomes}
    # weights 1, 0.1 and 0.25 of 1.35
    assert shares == pytest.approx({"learning": 0.74, "solved": 0.07, "unsolved": 0.19}, abs=0.07)


@pytest.mark.parametrize("kind", ["failure-filter", "pools"])
def test_a_curriculum_goes_on_where_its_checkpoint_was(kind):
    first = Curriculum(CurriculumConfig(kind=kind))
    outcomes = {"a": (1.0, 0.0), "b": (0.0, 0.0), "c": (1.0, 1.0)}
    rounds(first, outcomes, 5)
    second = Curriculum(first.config)
    second.restore(first.state())
    assert rounds(first, outcomes, 9) == rounds(second, outcomes, 9)


def test_a_batch_counts_what_it_left_out():
    kept, left = group(1.0, 0.0), group(0.0, 0.0)
    assert Batch((kept,), {}, (left,)).collected == (kept, left)
