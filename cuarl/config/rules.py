"""Rules that span several fields: no option is silently ignored, so what can't be honoured together is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from cuarl.config import remote_rules
from cuarl.config.algorithms import CREDITED, GROUP, OPTIONS
from cuarl.config.learning import inner
from cuarl.config.places import LocalTrainer
from cuarl.errors import ConfigError

if TYPE_CHECKING:
    from cuarl.config.fields import EnvOptions
    from cuarl.config.schema import ExperimentConfig

PROMPT_ONLY = ("renderer_name", "history_images", "history_turns", "history_older", "max_prompt_tokens")
LORA_ONLY = ("lora_rank", "lora_alpha", "lora_target_option", "lora_target_modules")


def refuse_idle(options: EnvOptions, names: Iterable[str], why: str) -> None:
    """Raise ConfigError for the first of the options' ``names`` that is set, where the tasks alone decide it."""
    for name in names:
        if getattr(options, name) != type(options).model_fields[name].default:
            raise ConfigError(f"env.{name} has no effect: {why}", where=f"--env {options.type}", hint="leave it out")


def problems(config: ExperimentConfig) -> list[str]:
    """Say what is wrong with the combination of values, one sentence each; empty if nothing is."""
    return [*_ignored(config), *_contradictions(config), *remote_rules.problems(config)]


def _ignored(config: ExperimentConfig) -> list[str]:
    adapter = "" if config.use_lora else "use_lora false"
    idle = [*_idle_options(config), *((name, adapter) for name in LORA_ONLY if adapter)]
    if isinstance(config.trainer, LocalTrainer) and not config.trainer.gradient_checkpointing:
        idle.append(("trainer.activation_gib", "trainer.gradient_checkpointing false"))
    return [
        f"{name} has no effect with {reason}; leave it out"
        for name, reason in idle
        if value_of(config, name) != default_of(config, name)
    ]


def default_of(config: ExperimentConfig, path: str) -> Any:
    """What a field is unless it is set."""
    name, _, inner = path.partition(".")
    record: type[BaseModel] = type(getattr(config, name)) if inner else type(config)
    return record.model_fields[inner or name].default


def value_of(config: ExperimentConfig, path: str) -> Any:
    """The value at a path."""
    name, _, inner = path.partition(".")
    return getattr(getattr(config, name), inner) if inner else getattr(config, name)


def path_of(config: ExperimentConfig, option: str) -> str | None:
    """Where an option of algorithms stands in this configuration; None if its records have none of that name."""
    if option in type(config).model_fields:
        return option
    name, record = ("policy", config.policy) if option == "sampler_device" else ("algorithm", config.algorithm)
    field = option if name == "policy" else inner(config.algorithm.type, option)
    return f"{name}.{field}" if field in type(record).model_fields else None


def _idle_options(config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    """Fields without effect, each with the reason; those by the table of algorithms first."""
    algorithm, learning = config.algorithm.type, config.learning
    for option, rule in OPTIONS.items():
        path = path_of(config, option)
        if path is None:
            continue
        if algorithm not in rule.algorithms:
            yield path, f"algorithm {algorithm}"
        elif rule.needs is not None:
            value = getattr(config if rule.needs in type(config).model_fields else learning, rule.needs)
            if not (value in rule.values if rule.values else value):
                yield path, f"{path_of(config, rule.needs) or rule.needs} {_shown(value)}"
    yield from config.env.idle()
    if config.env.judges:
        yield "side_effects", f"env {config.env.type}, which gives the verdict itself"
    if algorithm == "sft" and config.eval_tasks:
        yield "tasks", "algorithm sft and eval_tasks: no task is trained on"
    if algorithm in CREDITED and learning.credit == "episode":
        yield "algorithm.discount", "algorithm.credit episode"
    if config.reward != "judge":
        yield from ((name, f"reward {config.reward}") for name in ("judge_base_url", "judge_model", "judge_screens"))
    if config.history_turns == 0:
        yield "history_older", "history_turns 0"
    if not set(config.track) - {"tensorboard"}:
        yield "track_project", f"track {config.track[0]}" if config.track else "no track"


def _shown(value: object) -> str:
    return "unset" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"


def _contradictions(config: ExperimentConfig) -> list[str]:
    found: list[str] = []
    algorithm, learning = config.algorithm.type, config.learning
    if config.reward == "judge" and not (config.judge_base_url and config.judge_model):
        found.append("reward judge needs judge_base_url and judge_model, the model that is asked")
    if config.max_steps_off_policy and learning.dynamic_sampling_rounds:
        found.append(
            "algorithm.dynamic_sampling_rounds collects again within a step, which max_steps_off_policy has no place "
            "for: set one to 0"
        )
    for name in ("hint_turns", "imitation_coef") if config.max_steps_off_policy else ():
        if getattr(learning, name):
            found.append(
                f"algorithm.{name} collects again within a step, which max_steps_off_policy has no place for: set one "
                "to 0"
            )
    if (config.lora_target_option == "custom") != bool(config.lora_target_modules):
        found.append("lora_target_option custom and lora_target_modules need each other")
    if config.kl_penalty_coef and not config.use_lora and learning.kl_reference == "base":
        found.append(
            "kl_penalty_coef needs use_lora true, where the base without its adapter is the reference, or "
            "algorithm.kl_reference start"
        )
    if config.quantization == "nf4" and not config.use_lora:
        found.append(
            "quantization nf4 freezes the base, on which only an adapter can be trained: use_lora true (--use-lora), "
            "or leave quantization out"
        )
    if algorithm == "sft" and not learning.sft_runs:
        found.append(
            "algorithm sft needs algorithm.runs: the runs whose episodes it imitates, as --sft-runs RUN gives them"
        )
    if algorithm in GROUP and config.group_size < 2:
        found.append(f"algorithm {algorithm} compares the attempts of a group, so group_size must be at least 2")
    if learning.rejection_rule == "best-of-group" and config.group_size < 2:
        found.append("algorithm.rule best-of-group needs a group_size of at least 2")
    if config.kl_penalty_coef and learning.kl_in == "loss" and learning.kl_estimator == "k1":
        found.append(
            "algorithm.kl_estimator k1 has a gradient of mean zero as a term of the loss: take k2 or k3, or "
            "algorithm.kl_in reward"
        )
    if learning.overlong_buffer > config.max_tokens:
        found.append("algorithm.overlong_buffer exceeds max_tokens")
    if learning.critic_warmup_steps >= config.max_steps and learning.critic_warmup_steps:
        found.append("algorithm.critic_warmup_steps leaves no step to train the policy: it must be below max_steps")
    found += config.env.problems(config)
    if config.max_turn_time_seconds > config.max_task_time_seconds:
        found.append("max_turn_time_seconds exceeds max_task_time_seconds")
    return found
