"""Which algorithms there are, what each sets unless told otherwise, and which options have an effect with which.

One table: ``rules`` turns it into errors, ``schema`` takes the defaults from it, and the documentation shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One value of ``algorithm``."""

    title: str
    paper: str
    """Where it is from, as an arXiv id; empty if it is common knowledge."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields that the experiment leaves unset, where they differ from the fields' own defaults."""


ALGORITHMS: Mapping[str, Algorithm] = {
    "grpo": Algorithm("Group relative policy optimisation", "2402.03300"),
    "dr-grpo": Algorithm(
        "GRPO done right: centred rewards, constant divisor", "2503.20783",
        {"advantage_normalization": "none", "loss_reduction": "constant"},
    ),
    "dapo": Algorithm(
        "Decoupled clip and dynamic sampling", "2503.14476",
        {"clip_high": 0.28, "dynamic_sampling_rounds": 3, "overlong_buffer": 32},
    ),
    "gspo": Algorithm(
        "Group sequence policy optimisation: one ratio for each answer", "2507.18071",
        {"clip_low": 3e-4, "clip_high": 4e-4, "loss_reduction": "turn"},
    ),
    "cispo": Algorithm(
        "Clipped importance-sampling weights", "2506.13585", {"clip_low": 1.0, "clip_high": 4.0}
    ),
    "rloo": Algorithm(
        "REINFORCE with a leave-one-out baseline", "2402.14740", {"advantage_normalization": "none"}
    ),
    "reinforce++": Algorithm("REINFORCE normalised over the batch", "2501.03262", {"kl_in": "reward"}),
    "gigpo": Algorithm("Group-in-group policy optimisation: groups of equal states within the group", "2505.10978",
                       {"discount": 0.95}),
    "ppo": Algorithm("Proximal policy optimisation with a critic", "1707.06347"),
    "rejection": Algorithm("Imitate the policy's own best episodes", "2304.06767"),
    "sft": Algorithm("Imitate stored episodes", ""),
    "dagger": Algorithm("Imitate an oracle in the states that the policy gets into", "1011.0686"),
}  # fmt: skip
"""Every algorithm by name."""

RATIO = frozenset(ALGORITHMS) - {"rejection", "sft", "dagger"}
"""Those with a ratio of probabilities, which need exact logprobs of the whole distribution."""
GROUP = RATIO - {"reinforce++", "ppo"}
"""Those that compare the attempts of a group."""
CREDITED = GROUP - {"rloo", "gigpo"}
"""Those that leave open what a turn is credited with."""


@dataclass(frozen=True, slots=True)
class Option:
    """When a field has an effect."""

    algorithms: frozenset[str]
    needs: str | None = None
    """Another field that must be set as well …"""
    values: tuple[Any, ...] = ()
    """… to one of these; empty: to anything that is not zero or unset."""


_COLLECTED = frozenset(ALGORITHMS) - {"sft"}
_PRACTISED = _COLLECTED - {"dagger"}
"""Those that learn from rewards."""
_PPO = frozenset({"ppo"})
_REJECTION = frozenset({"rejection"})
_DAGGER = frozenset({"dagger"})
_SFT = frozenset({"sft"}) | _DAGGER

OPTIONS: Mapping[str, Option] = {
    "temperature": Option(_COLLECTED),
    "reward": Option(_COLLECTED),
    "shortest_path_coef": Option(_PRACTISED),
    "overlong_buffer": Option(RATIO),
    "overlong_penalty": Option(RATIO, "overlong_buffer"),
    "advantage_normalization": Option(RATIO - {"dr-grpo", "rloo"}),
    "credit": Option(CREDITED),
    "credit_lambda": Option(CREDITED, "credit", ("screen",)),
    "discount": Option(CREDITED | {"gigpo", "ppo"}),
    "gigpo_anchor": Option(frozenset({"gigpo"})),
    "gigpo_weight": Option(frozenset({"gigpo"})),
    "loss_reduction": Option(RATIO - {"dr-grpo"}),
    "loss_constant_tokens": Option(RATIO, "loss_reduction", ("constant",)),
    "mask_truncated": Option(RATIO),
    "clip_low": Option(RATIO),
    "clip_high": Option(RATIO),
    "decoupled": Option(RATIO),
    "importance_cap": Option(RATIO, "decoupled", (True,)),
    "kl_penalty_coef": Option(RATIO),
    "kl_reference": Option(RATIO, "kl_penalty_coef"),
    "kl_in": Option(RATIO, "kl_penalty_coef"),
    "kl_estimator": Option(RATIO, "kl_penalty_coef"),
    "compute_post_kl": Option(RATIO),
    "entropy_coef": Option(RATIO),
    "entropy_floor": Option(RATIO),
    "dynamic_sampling_rounds": Option(GROUP),
    "replay_per_task": Option(GROUP - {"gigpo"}, "credit", ("episode",)),
    "replay_max_age": Option(GROUP - {"gigpo"}, "replay_per_task"),
    "max_steps_off_policy": Option(_PRACTISED),
    "sampler_device": Option(_COLLECTED),
    "curriculum": Option(_PRACTISED),
    "curriculum_patience": Option(_PRACTISED, "curriculum", ("failure-filter",)),
    "curriculum_cooldown": Option(_PRACTISED, "curriculum", ("failure-filter",)),
    "hint_turns": Option(GROUP - {"gigpo"}, "credit", ("episode",)),
    "imitation_coef": Option(GROUP - {"gigpo"}, "credit", ("episode",)),
    "critic_level": Option(_PPO),
    "critic_trunk": Option(_PPO),
    "critic_warmup_steps": Option(_PPO),
    "gae_lambda": Option(_PPO),
    "value_clip": Option(_PPO),
    "value_loss_coef": Option(_PPO, "critic_trunk", ("shared",)),
    "value_learning_rate": Option(_PPO),
    "rejection_rule": Option(_REJECTION),
    "reward_threshold": Option(_REJECTION),
    "validation_split": Option(_COLLECTED),
    "validation_episodes": Option(_COLLECTED, "validation_split"),
    "sft_runs": Option(_SFT),
    "sft_min_reward": Option(_SFT),
    "sft_weights": Option(_SFT),
    "rehearsal": Option(_SFT),
    "dagger_beta": Option(_DAGGER),
    "dagger_decay": Option(_DAGGER),
    "dagger_aggregate": Option(_DAGGER),
}
"""Every field that depends on the algorithm. A field that is not listed always has an effect."""
