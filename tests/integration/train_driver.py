"""Trains a tiny policy for two steps and writes weights and metrics: run alone, or by accelerate in several
processes."""

import copy
import json
import sys
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file

from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.train.processes import from_main, gather_batch, join_processes, sharded
from cuarl.train.schedule import OptimConfig
from tests.unit.train.policies import played, tiny_policy, weights
from tests.unit.train.test_packed_turns import conversed

warnings.filterwarnings("error")
warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")


def cut_off(batch):
    """The same batch with every answer of the last episode cut off, so that only one episode is trained."""
    (group,) = batch.groups
    last = group.trajectories[-1]
    turns = tuple(t.model_copy(update={"sampled": t.sampled.model_copy(update={"stop": "length"})}) for t in last.turns)
    episodes = (*group.trajectories[:-1], last.model_copy(update={"turns": turns}))
    return Batch((group.model_copy(update={"trajectories": episodes}),), batch.pictures)


def gathered(batch, rank, world):
    """``batch``, put together again from what each process would have collected of it."""
    groups = batch.groups[rank::world]
    seen = {i.digest for g in groups for t in g.trajectories for turn in t.turns for i in turn.sampled.images}
    mine = {digest: batch.pictures[digest] for digest in seen}
    # where the main process alone reads episodes, all of them learn how much each counts, and what is rehearsed
    told = {"importance": {"e": 2.0}, "rehearsal": batch.groups[:1]} if rank == 0 else {}
    whole = gather_batch(Batch(groups, mine, **told))
    assert whole.groups == batch.groups
    assert world == 1 or (whole.importance == {"e": 2.0} and whole.rehearsal == batch.groups[:1])
    assert all(batch.pictures[digest].digest == picture.digest for digest, picture in whole.pictures.items())
    return whole


def saved_and_restored(learner, folder, batch):
    """Weights and moments survive a checkpoint that is put together from the shards, whatever is learnt after it."""
    before, state = weights(learner.policy), copy.deepcopy(learner.state())
    moments, originals = state["optimizer"]["state"], state.get("master", ())
    checkpoints = Checkpoints(folder / "checkpoints", learner, About(run="mine", base_model="org/model"))
    checkpoints.save(3)
    checkpoints.commit(3, {})
    learner.accelerator.wait_for_everyone()
    learner.begin_step(4)
    learner.update(batch, 4)
    for p in learner.policy.parameters():
        p.data.add_(1.0)
    assert checkpoints.restore() == 3
    assert all(torch.equal(before[name], p) for name, p in weights(learner.policy).items())
    again = learner.state()
    assert all(torch.equal(a, b) for a, b in zip(originals, again.get("master", ()), strict=True))
    again = again["optimizer"]["state"]
    assert all(torch.equal(moments[i][k], again[i][k]) for i in moments for k in ("exp_avg", "exp_avg_sq", "step"))


def main(folder, kind="grpo"):
    full, short = kind.startswith("full"), kind.endswith("16")
    accelerator = join_processes()
    policy = tiny_policy(full=full, dtype=torch.bfloat16 if short else torch.float32)
    policy.model.to(accelerator.device)
    # with a critic and a penalty in the reward every process needs what all have seen of the rows
    extra = {"baseline": "critic", "kl_coef": 0.1} if kind == "ppo" else {}
    # packed turns have more than one row a sequence, and the reference is another set of weights
    packed = kind == "start"
    config = LearnerConfig(
        batch=BatchConfig(max_tokens=40, num_substeps=2, mask_truncated=True, **extra),
        loss=LossConfig(decoupled=kind == "ppo", kl_penalty_coef=0.1 if packed else 0.0),
        reference="start" if packed else "base",
        # a large epsilon, or AdamW turns rounding of tiny gradients into steps of either sign
        optim=OptimConfig(learning_rate=1e-2, adam_eps=1e-3),
    )
    config = config.model_copy(update={"sharded": sharded()})
    learner = Learner(policy, config, accelerator)
    assert from_main("main" if learner.accelerator.is_main_process else None) == "main"
    rank, world = learner.accelerator.process_index, learner.accelerator.num_processes
    history = []
    for step in (1, 2, 3):
        learner.begin_step(step)
        if step == 1:
            play = conversed if packed else played
            batch = play(policy, [(1, 0, 0, 1, 0), (0, 1, 0), (1, 0)], turns=3)
        elif step == 2:
            batch = cut_off(played(policy, [(1, 0)], turns=1))
        else:
            batch = played(policy, [(1, 0, 0), (1, 1)], with_pictures=False, seed=1)
        batch = gathered(batch, rank, world)
        history.append(learner.update(batch, step))
    if config.sharded:
        saved_and_restored(learner, folder, batch)
    folder.mkdir(exist_ok=True)
    save_file(weights(policy), folder / f"rank{rank}.safetensors")
    (folder / f"rank{rank}.json").write_text(json.dumps(history))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
