"""Rules that span several fields: no option is silently ignored, so a combination that can't be honoured is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cuarl.config import remote_rules

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig

GRPO_ONLY = (
    "advantage_normalization", "credit", "loss_reduction", "loss_constant_tokens", "mask_truncated", "clip_low", "clip_high",
    "kl_penalty_coef", "entropy_coef", "reward",
)  # fmt: skip
SFT_ONLY = ("sft_runs", "sft_min_reward")
SIM_ONLY = ("profile", "clutter")
ENVS_WITH_OPTIONS = ("linux", "browser", "gbox")
"""Environments whose options bear their name in front."""
LORA_ONLY = ("lora_rank", "lora_alpha", "lora_target_option", "lora_target_modules")


def problems(config: ExperimentConfig) -> list[str]:
    """Say what is wrong with the combination of values, one sentence each; empty if nothing is."""
    return [*_ignored(config), *_contradictions(config), *remote_rules.problems(config)]


def _ignored(config: ExperimentConfig) -> list[str]:
    idle: Mapping[str, tuple[str, ...]] = {
        f"algorithm {config.algorithm}": SFT_ONLY if config.algorithm == "grpo" else GRPO_ONLY,
        "use_lora false": () if config.use_lora else LORA_ONLY,
        f"credit {config.credit}": () if config.credit == "screen" else ("credit_lambda", "discount"),
        f"loss_reduction {config.loss_reduction}": (
            () if config.loss_reduction == "constant" else ("loss_constant_tokens",)
        ),
        f"env {config.env}": tuple(_of_other_environments(config)),
    }
    return [
        f"{name} has no effect with {reason}; leave it out"
        for reason, names in idle.items()
        for name in names
        if getattr(config, name) != type(config).model_fields[name].default
    ]


def _of_other_environments(config: ExperimentConfig) -> Iterator[str]:
    for name in type(config).model_fields:
        owner = "sim" if name in SIM_ONLY else name.partition("_")[0]
        if owner in ("sim", *ENVS_WITH_OPTIONS) and owner != config.env:
            yield name


def _contradictions(config: ExperimentConfig) -> list[str]:
    found = []
    if config.max_steps_off_policy is not None:
        found.append("max_steps_off_policy is reserved for asynchronous training, which this version does not have")
    if (config.lora_target_option == "custom") != bool(config.lora_target_modules):
        found.append("lora_target_option custom and lora_target_modules need each other")
    if config.kl_penalty_coef and not config.use_lora:
        found.append("kl_penalty_coef needs use_lora true: the base without its adapter is the reference")
    if config.algorithm == "sft" and not config.sft_runs:
        found.append("algorithm sft needs sft_runs: the runs whose episodes it imitates")
    if config.algorithm == "grpo" and config.group_size < 2:
        found.append("algorithm grpo compares the attempts of a group, so group_size must be at least 2")
    if config.max_turn_time_seconds > config.max_task_time_seconds:
        found.append("max_turn_time_seconds exceeds max_task_time_seconds")
    return found
