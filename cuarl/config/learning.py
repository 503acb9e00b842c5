"""What is learnt from a batch: all options of all algorithms, and the record that each algorithm has of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Annotated, Any, Literal, cast

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, create_model

from cuarl.config.algorithms import ALGORITHMS, OPTIONS
from cuarl.config.fields import Choice, Fields, Share, Words
from cuarl.config.sources import SourceWeights


class Learning(Fields):
    """The options of algorithms, at rest unless one of them says otherwise."""

    panel = "Algorithm"

    advantage_normalization: Literal["std", "none"] = "std"
    """Divide centred rewards by the group's standard deviation, or only centre them."""
    credit: Literal["episode", "screen"] = "episode"
    """What a turn is credited with: its episode's advantage (plain GRPO), or its own, from the screens that the
    attempts of a group share, which needs screens that repeat."""
    shortest_path_coef: Share = 0.0
    """How much of a success's reward a detour costs, against the group's shortest success; 0 means nothing."""
    overlong_buffer: NonNegativeInt = 0
    """How many tokens before max_tokens an answer begins to cost reward; 0 means never."""
    overlong_penalty: PositiveFloat = 1.0
    """What the longest possible answer costs."""
    credit_lambda: Share = 0.5
    """How far credit by screen looks ahead: 0 one screen, 1 to the end of the episode."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """With credit by screen, gigpo and ppo: what a success is worth for each turn that it comes later."""
    gigpo_anchor: Literal["screen", "text"] = "screen"
    """What makes two turns of a group the same state: equal pixels, or equal text fields of the observation."""
    gigpo_weight: NonNegativeFloat = 1.0
    """Weight of the advantage among equal states, against that of the episode."""
    loss_reduction: Literal["token", "turn", "sequence", "constant"] = "token"
    """Average over all tokens of the batch, over turns or episodes first, or divide by a constant."""
    loss_constant_tokens: PositiveInt = 1024
    """Divisor of an episode's sum with loss_reduction constant."""
    mask_truncated: bool = False
    """Leave answers that ran into max_tokens out of the loss."""
    clip_low: Share = 0.2
    """How far below one the probability ratio still gives a gradient."""
    clip_high: PositiveFloat = 0.2
    """How far above one the probability ratio still gives a gradient."""
    decoupled: bool = False
    """Clip against the policy at the start of the step, recomputed, and weigh by its ratio to the one that sampled."""
    importance_cap: PositiveFloat | None = None
    """Upper bound of that weight (truncated importance sampling)."""
    kl_reference: Literal["base", "start"] = "base"
    """The reference: the base with the adapter off, or the policy as it is when the run starts, which differs where
    training goes on from a checkpoint."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Where the divergence counts: as a term of the loss, or against the reward of each token."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    """How the divergence is estimated from sampled tokens."""
    entropy_coef: NonNegativeFloat = 0.0
    """Weight of an entropy bonus."""
    entropy_floor: NonNegativeFloat = 0.0
    """Mean entropy of the trained tokens, in nats, below which a step has an entropy bonus of its own, which grows
    while it stays below and shrinks above; 0 means none."""
    dynamic_sampling_rounds: NonNegativeInt = 0
    """How often a step may collect again in place of groups whose rewards are all equal; 0 means never."""
    replay_per_task: NonNegativeInt = 0
    """Successes kept of each task, to stand in where all attempts of a group fail; 0 means none."""
    replay_max_age: PositiveInt | None = None
    """Steps after which a kept success is forgotten; unset means never."""
    curriculum: Literal["none", "failure-filter", "pools"] = "none"
    """Which tasks come next: all in turn, all but those that keep failing, or more of those solved now and then."""
    curriculum_patience: PositiveInt = 2
    """Groups without success in a row after which a task is set aside."""
    curriculum_cooldown: PositiveInt = 3
    """Rounds through all tasks for which it is set aside."""
    hint_turns: NonNegativeInt = 0
    """Where all attempts of a group fail, collect it again in the same step, led by the first turns of the oracle: at
    first so many, then as many as it takes, fewer as more succeed; for tasks that an oracle can do; 0 means never."""
    imitation_coef: NonNegativeFloat = 0.0
    """Where all attempts of a group fail, the weight of a loss that imitates the oracle's demonstration of the task;
    0 means none."""
    critic_level: Literal["turn", "token"] = "turn"
    """Whether the critic of ppo values each turn or each token."""
    critic_trunk: Literal["detached", "shared"] = "detached"
    """Whether the critic's gradient stops at its head, or trains the policy's layers too."""
    critic_warmup_steps: NonNegativeInt = 0
    """First steps in which only the critic learns."""
    gae_lambda: Share = 0.95
    """How far the advantage looks beyond the critic's next value: 0 one turn or token, 1 to the end."""
    value_clip: NonNegativeFloat = 0.2
    """How far an update may move a value; 0 means no bound."""
    value_loss_coef: PositiveFloat = 0.5
    """Weight of the critic's loss in the policy's layers, with critic_trunk shared."""
    value_learning_rate: PositiveFloat = 1e-3
    """Learning rate of the critic's head."""
    rejection_rule: Literal["threshold", "best-of-group"] = "threshold"
    """Imitate every episode above the threshold, or only the best of each group."""
    reward_threshold: float = 0.0
    """An episode is imitated if its reward is greater than this."""
    sft_runs: Words = ()
    """Runs whose stored episodes sft imitates."""
    sft_min_reward: float = 1.0
    """Least reward of an episode that sft imitates."""
    sft_weights: SourceWeights = ()
    """How much a turn counts by who showed it, as human=2,plan=1,corrected=4,policy=0; 1 for whom nothing is said."""
    rehearsal: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the trained tokens that rehearse what the base was pre-trained for (pointing, reading, typing, finding
    one's way) on screens drawn anew, so that it is not unlearnt; for bases of cuarl model build."""
    dagger_beta: Share = 0.5
    """Probability with which the oracle acts in a turn of the first step; it labels all others."""
    dagger_decay: Share = 0.9
    """What that is multiplied with from step to step."""
    dagger_aggregate: NonNegativeFloat = 1.0
    """Episodes of earlier steps, and of the runs to imitate, that a step imitates again for each new one."""


class AlgorithmOptions(Choice):
    """The options that have an effect with one algorithm: some of ``Learning``, with its own defaults."""

    bare = True

    @classmethod
    def descriptions(cls) -> Mapping[str, str]:
        """What fields mean: what they mean in ``Learning``."""
        learning = Learning.descriptions()
        return {**super().descriptions(), **{field: learning[option] for field, option in cls.flags.items()}}


@cache
def record_of(name: str) -> type[AlgorithmOptions]:
    """The record of an algorithm. Raises KeyError if there is none of that name."""
    defaults = ALGORITHMS[name].defaults
    fields: dict[str, Any] = {"type": (Literal[name], name)}
    flags = {}
    for option, field in Learning.model_fields.items():
        if name in OPTIONS[option].algorithms:
            own = copy(field)
            own.default = defaults.get(option, field.default)
            fields[inner(name, option)], flags[inner(name, option)] = (field.annotation, own), option
    made = create_model(
        f"{name} options", __base__=AlgorithmOptions, __doc__=f"The options of ``algorithm: {name}``.", **fields
    )
    made.flags = flags
    return cast(type[AlgorithmOptions], made)


def inner(name: str, option: str) -> str:
    """What an option is called in the record of an algorithm: ``gigpo_anchor`` is ``anchor`` there."""
    return option.removeprefix(f"{name}_")


def complete(record: AlgorithmOptions) -> Learning:
    """The options of the record's algorithm, and what of all others is at rest."""
    own = {record.flags[field]: getattr(record, field) for field in type(record).model_fields if field != "type"}
    fixed = ALGORITHMS[record.type].defaults
    return Learning.model_validate({**fixed, **own})
