"""Rules that span several fields: no option is silently ignored, so a combination that can't be honoured is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cuarl.config import remote_rules
from cuarl.config.algorithms import ALGORITHMS, CREDITED, GROUP, OPTIONS
from cuarl.errors import ConfigError

if TYPE_CHECKING:
    from cuarl.config.fields import EnvOptions
    from cuarl.config.schema import ExperimentConfig

PROMPT_ONLY = ("renderer_name", "history_images", "history_turns", "history_older", "max_prompt_tokens")
LORA_ONLY = ("lora_rank", "lora_alpha", "lora_target_option", "lora_target_modules")


def refuse_idle(options: EnvOptions, names: Iterable[str], why: str) -> None:
    """Raise ConfigError for the first of the options' ``names`` that is set to something, where only the tasks decide that."""
    for name in names:
        if getattr(options, name) != type(options).model_fields[name].default:
            raise ConfigError(f"env.{name} has no effect: {why}", where=f"--env {options.type}", hint="leave it out")


def problems(config: ExperimentConfig) -> list[str]:
    """Say what is wrong with the combination of values, one sentence each; empty if nothing is."""
    return [*_ignored(config), *_contradictions(config), *remote_rules.problems(config)]


def _ignored(config: ExperimentConfig) -> list[str]:
    adapter = "" if config.use_lora else "use_lora false"
    idle = [*_idle_options(config), *((name, adapter) for name in LORA_ONLY if adapter)]
    if not config.gradient_checkpointing:
        idle.append(("activation_gib", "gradient_checkpointing false"))
    return [
        f"{name} has no effect with {reason}; leave it out"
        for name, reason in idle
        if value_of(config, name) != default_of(config, name)
    ]


def default_of(config: ExperimentConfig, path: str) -> Any:
    """What a field is with this algorithm unless it is set."""
    name, _, inner = path.partition(".")
    own = type(getattr(config, name)).model_fields[inner] if inner else type(config).model_fields[name]
    return ALGORITHMS[config.algorithm].defaults.get(path, own.default)


def value_of(config: ExperimentConfig, path: str) -> Any:
    """The value at a path."""
    name, _, inner = path.partition(".")
    return getattr(getattr(config, name), inner) if inner else getattr(config, name)


def _idle_options(config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    """Fields without effect, by the table of algorithms, each with the reason."""
    for name, option in OPTIONS.items():
        if config.algorithm not in option.algorithms:
            yield name, f"algorithm {config.algorithm}"
        elif option.needs is not None:
            value = getattr(config, option.needs)
            if not (value in option.values if option.values else value):
                yield name, f"{option.needs} {_shown(value)}"
    yield from config.env.idle()
    if config.env.judges:
        yield "side_effects", f"env {config.env.type}, which gives the verdict itself"
    if config.algorithm == "sft" and config.eval_tasks:
        yield "tasks", "algorithm sft and eval_tasks: no task is trained on"
    if config.algorithm in CREDITED and config.credit == "episode":
        yield "discount", "credit episode"
    if config.history_turns == 0:
        yield "history_older", "history_turns 0"


def _shown(value: object) -> str:
    return "unset" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"


def _contradictions(config: ExperimentConfig) -> list[str]:
    found = []
    if config.max_steps_off_policy and config.dynamic_sampling_rounds:
        found.append(
            "dynamic_sampling_rounds collects again within a step, which max_steps_off_policy has no place for: set one to 0"
        )
    if (config.lora_target_option == "custom") != bool(config.lora_target_modules):
        found.append("lora_target_option custom and lora_target_modules need each other")
    if config.kl_penalty_coef and not config.use_lora and config.kl_reference == "base":
        found.append(
            "kl_penalty_coef needs use_lora true, where the base without its adapter is the reference, or kl_reference start"
        )
    if config.algorithm == "sft" and not config.sft_runs:
        found.append("algorithm sft needs sft_runs: the runs whose episodes it imitates")
    if config.algorithm in GROUP and config.group_size < 2:
        found.append(f"algorithm {config.algorithm} compares the attempts of a group, so group_size must be at least 2")
    if config.rejection_rule == "best-of-group" and config.group_size < 2:
        found.append("rejection_rule best-of-group needs a group_size of at least 2")
    if config.kl_penalty_coef and config.kl_in == "loss" and config.kl_estimator == "k1":
        found.append(
            "kl_estimator k1 has a gradient of mean zero as a term of the loss: take k2 or k3, or kl_in reward"
        )
    if config.overlong_buffer > config.max_tokens:
        found.append("overlong_buffer exceeds max_tokens")
    if config.critic_warmup_steps >= config.max_steps and config.critic_warmup_steps:
        found.append("critic_warmup_steps leaves no step to train the policy: it must be below max_steps")
    found += config.env.problems(config)
    if config.max_turn_time_seconds > config.max_task_time_seconds:
        found.append("max_turn_time_seconds exceeds max_task_time_seconds")
    return found
