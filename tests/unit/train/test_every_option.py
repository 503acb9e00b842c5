"""Every option of an algorithm that is not refused with it changes what a learner learns, reports or chooses next.

The refusals, and the other fields, are in ``tests.unit.workflow.test_every_option.py``.
"""

import random

import pytest
import torch

from cuarl.config.algorithms import ALGORITHMS, OPTIONS
from cuarl.config.keys import keys, value_of
from cuarl.config.load import resolve
from cuarl.config.schema import OptimFields
from cuarl.errors import ConfigError
from cuarl.policy.inputs import Row
from cuarl.policy.score import Scorer
from cuarl.train.batch import Batch
from cuarl.train.learner import Learner
from cuarl.types import ImageRef
from cuarl.workflow.from_config import learner_config
from tests.unit.workflow.test_every_option import needed, other

from .episodes import group, sampled, trajectory
from .policies import SPECIAL, WORDS, tiny_policy, weights

ELSEWHERE = {
    "reward", "temperature", "dynamic_sampling_rounds", "max_steps_off_policy", "sampler_device", "sft_runs",
    "sft_min_reward", "sft_weights", "rehearsal", "dagger_beta",
    "imitation_coef", "dagger_decay", "dagger_aggregate", "max_steps", "validation_split", "validation_episodes",
}  # fmt: skip
"""What collecting, imitation's choice, evaluation and the loop are told; the learner is not."""
BASE = {
    "max_tokens": 6, "micro_batch_tokens": 200, "learning_rate": 1e-2, "max_steps": 4, "group_size": 3,
    "max_grad_norm": 0.5,
}  # fmt: skip
OWN = {"dapo": {"overlong_buffer": 3}}
"""Where an algorithm's own default goes with longer answers than these."""
VALUES = {
    "clip_low": 0.01, "clip_high": 0.02, "importance_cap": 0.9, "reward_threshold": 1.5, "overlong_buffer": 4,
    "num_epochs": 2, "micro_batch_tokens": 60, "learning_rate": 3e-3, "max_grad_norm": 1e-4, "replay_max_age": 1,
    "value_clip": 1e-3, "curriculum_patience": 1, "curriculum_cooldown": 1, "warmup_steps": 3,
    "shortest_path_coef": 0.9, "critic_warmup_steps": 2, "adam_eps": 1e-3, "weight_decay": 0.5,
    "loss_constant_tokens": 9, "kl_penalty_coef": 0.5,
}  # fmt: skip
"""Values that tell within three small steps."""
BESIDE = {
    "value_clip": {"num_epochs": 2},
    "curriculum_cooldown": {"curriculum_patience": 1},
    ("rejection", "shortest_path_coef"): {"reward_threshold": 1.2},
}
"""What makes an option tell at all."""
REWARDS = [[(2, 1, 0), (0, 1, 2)], [(0, 0, 0), (1, 0, 0)], [(0, 0, 0), (0, 2, 1)]]
"""Of two groups in each of three steps; the first step's successes stand in for the others' failures."""
TASKS = ("even", "odd")


def answered(policy, rng, words, before):
    """A turn whose prompt holds all that came before it, sampled by a slightly other policy, now and then cut off."""
    row = Row((*before, *rng.choices(words, k=3)), (), (*rng.choices(words, k=rng.randint(1, 4)), special_end(policy)))
    with torch.no_grad():
        known = Scorer(policy).eval()(policy.collate([row])).logprobs[0].tolist()
    noisy, stop = tuple(p + rng.gauss(0, 0.3) for p in known), "length" if rng.random() < 0.2 else "eos"
    return sampled(row.answer_ids, row.prompt_ids, logprobs=noisy, stop=stop)


def special_end(policy):
    return policy.special.end_of_turn


def episode(policy, rng, reward, name, task):
    """One to three turns, on screens and with texts that come again in others."""
    words, said = range(len(SPECIAL), len(SPECIAL) + WORDS), []
    for _ in range(rng.randint(1, 3)):
        past = (*said[-1].prompt_ids, *said[-1].token_ids) if said else ()
        said.append(answered(policy, rng, words, past))
    told = trajectory(reward, *said, episode=name, group=name.partition("/")[0])
    turns = tuple(
        turn.model_copy(
            update={
                "screenshot": ImageRef(digest=str(rng.randrange(2)) * 64, width=4, height=4),
                "text": {"title": str(rng.randrange(3))},
            }
        )
        for turn in told.turns
    )
    return told.model_copy(update={"turns": turns, "task_id": task})


@pytest.fixture(scope="module")
def start():
    """A policy whose adapter does something, its weights, and batches that it sampled."""
    policy = tiny_policy()
    with torch.random.fork_rng():
        torch.manual_seed(5)
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.05)
    rng, batches = random.Random(1), []
    for step, rewards in enumerate(REWARDS):
        groups = [
            group(*(episode(policy, rng, r, f"{step}.{i}/{n}", task) for n, r in enumerate(rs)), group_id=f"{step}.{i}")
            for i, (rs, task) in enumerate(zip(rewards, TASKS, strict=True))
        ]
        batches.append(
            Batch(tuple(g.model_copy(update={"task_id": t}) for g, t in zip(groups, TASKS, strict=True)), {})
        )
    return policy, weights(policy), batches


def made(algorithm, **fields):
    imitated = {"sft_runs": ("mine",)} if algorithm == "sft" else {}
    return resolve(flags={"algorithm": algorithm, **imitated, **BASE, **OWN.get(algorithm, {}), **fields}).config


def outcome(config, start):
    """What three steps learn, report and choose, and in how many passes."""
    policy, adapter, batches = start
    policy.model.load_state_dict(adapter, strict=False)
    policy.updated(0)
    learner, passes, told = Learner(policy, learner_config(config)), [], []
    counting = policy.model.get_output_embeddings().register_forward_hook(lambda *_: passes.append(1))
    for step, batch in enumerate(batches, start=1):
        learner.begin_step(step)
        told.append(learner.update(batch, step))
        if learner.curriculum is not None:
            told.append(learner.curriculum.choose(TASKS, 6))
    counting.remove()
    return told, len(passes), {name: p.tolist() for name, p in weights(policy).items() if "layers.2" in name}


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(a, marks=() if a in ("grpo", "ppo", "rejection", "sft") else pytest.mark.slow) for a in ALGORITHMS],
)
def test_each_option_that_is_taken_changes_something(start, algorithm):
    known, idle, tried = {}, [], 0
    for name in [*OPTIONS, *OptimFields.model_fields, "micro_batch_tokens", "pack_turns"]:
        if name in ELSEWHERE:
            continue
        beside = {k: VALUES.get(k, v) for k, v in needed(name, algorithm).items() if k != name}
        beside |= BESIDE.get(name, {}) | BESIDE.get((algorithm, name), {})
        try:
            before = made(algorithm, **beside)
            value = VALUES.get(name, other(name))
            owners = keys()[name].owners
            if (not owners or algorithm in owners) and value == value_of(before, keys()[name].path):
                value = {"credit": "episode", "advantage_normalization": "std"}.get(name)
            after = made(algorithm, **{**beside, name: value})
        except ConfigError as error:
            assert any(keys()[n].path in str(error) for n in (name, *beside)), error
            continue
        if before.digest not in known:
            known[before.digest] = outcome(before, start)
        tried += 1
        if outcome(after, start) == known[before.digest]:
            idle.append(name)
    assert idle == []
    assert tried >= len(OptimFields.model_fields) - 1
