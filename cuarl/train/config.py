"""Everything that decides what a batch does to the weights, in one record."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from cuarl.train.batch import BatchConfig
from cuarl.train.curriculum import CurriculumConfig
from cuarl.train.loss import LossConfig
from cuarl.train.rejection import Rejection
from cuarl.train.replay import ReplayConfig
from cuarl.train.schedule import OptimConfig
from cuarl.types import Record


class LearnerConfig(Record):
    """Everything that decides what a batch does to the weights."""

    objective: Literal["reward", "imitation", "rejection"] = "reward"
    """Policy gradients, or the likelihood of all episodes given, or of the best of them."""
    rejection: Rejection = Rejection()
    compute_post_kl: bool = False
    """Measure after each step how far it moved the policy."""
    replay: ReplayConfig = ReplayConfig()
    curriculum: CurriculumConfig | None = None
    """How tasks are chosen; None: the learner is not asked."""
    hint_turns: NonNegativeInt = 0
    """How far an oracle leads at first where a group fails whole; 0: not at all."""
    imitation_coef: NonNegativeFloat = 0.0
    """Weight of imitating an oracle's demonstration where a group fails whole."""
    entropy_floor: NonNegativeFloat = 0.0
    """Mean entropy of a token, in nats, below which there is an entropy bonus; 0: never."""
    batch: BatchConfig = BatchConfig()
    loss: LossConfig = LossConfig()
    reference: Literal["base", "start"] = "base"
    """What a KL penalty is taken to: the base, or the policy as it was when training began."""
    optim: OptimConfig = OptimConfig()
    max_steps: PositiveInt = 32
    """Length of the run in training steps, for the learning rate's schedule."""
    seed: NonNegativeInt = 0
    sharded: bool = False
    """Keep the decoder's layers in shards over the processes while gradients are computed."""
    gradient_checkpointing: bool = False
    """Keep no activations of the layers and compute them again in the backward pass."""
    activation_gib: NonNegativeFloat = 0.0
    """With gradient checkpointing on an accelerator: activations (GiB) that are kept all the same."""

    @property
    def penalised(self) -> bool:
        """Whether the divergence from a reference counts."""
        return self.loss.kl_penalty_coef > 0 or self.batch.kl_coef > 0
