"""Rules that span several fields: no option is silently ignored, so a combination that can't be honoured is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from cuarl.config import remote_rules
from cuarl.config.algorithms import ALGORITHMS, CREDITED, GROUP, OPTIONS
from cuarl.errors import ConfigError

if TYPE_CHECKING:
    from cuarl.config.schema import EnvFields, ExperimentConfig

SIM_ONLY = ("profile", "clutter")
ENVS_WITH_OPTIONS = ("adb", "linux", "browser", "gbox", "pods", "gym", "gymnasium", "browsergym", "openenv")
"""Environments whose options bear their name in front."""
JUDGING = ("gym", "gymnasium", "browsergym", "openenv")
"""Environments whose own verdict counts, so that cuarl looks for no side effects."""
MINI_AGENT_ONLY = ("gym_agent", "gym_poll_seconds", "gym_listen", "gym_model_url", "gym_picture_hosts")
PROMPT_ONLY = ("renderer_name", "history_images", "history_turns", "history_older", "max_prompt_tokens")
LORA_ONLY = ("lora_rank", "lora_alpha", "lora_target_option", "lora_target_modules")


def owner_of(name: str) -> str | None:
    """The environment whose option a field is; None if it is no environment's own."""
    owner = "sim" if name in SIM_ONLY else name.partition("_")[0]
    return owner if owner in ("sim", *ENVS_WITH_OPTIONS) else None


def env_options(env: str) -> list[str]:
    """The fields that are options of ``env`` alone, in the order of the schema."""
    from cuarl.config.schema import EnvFields

    return [name for name in EnvFields.model_fields if owner_of(name) == env]


def refuse_idle(config: EnvFields, names: Iterable[str], why: str) -> None:
    """Raise ConfigError for the first of ``names`` that is set to something, for a use that only the tasks decide."""
    for name in names:
        if getattr(config, name) != type(config).model_fields[name].default:
            raise ConfigError(f"{name} has no effect: {why}", where=f"--env {config.env}", hint="leave it out")


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
        if getattr(config, name) != default_of(config, name)
    ]


def default_of(config: ExperimentConfig, name: str) -> Any:
    """What a field is with this algorithm unless it is set."""
    own = type(config).model_fields[name].default
    return ALGORITHMS[config.algorithm].defaults.get(name, own)


def _idle_options(config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    """Fields without effect, by the table of algorithms, each with the reason."""
    for name, option in OPTIONS.items():
        if config.algorithm not in option.algorithms:
            yield name, f"algorithm {config.algorithm}"
        elif option.needs is not None:
            value = getattr(config, option.needs)
            if not (value in option.values if option.values else value):
                yield name, f"{option.needs} {_shown(value)}"
    for name in type(config).model_fields:
        owner = owner_of(name)
        if owner is not None and owner != config.env:
            yield name, f"env {config.env}"
    if config.env != "gbox":
        yield "coordinate_mode", f"env {config.env}"
    elif config.coordinate_mode == "gbox":
        yield "renderer_name", "coordinate_mode gbox, which has words of its own"
    if config.env == "gym" and config.gym_actor == "cuarl":
        yield from ((name, "gym_actor cuarl") for name in MINI_AGENT_ONLY)
    if config.env in JUDGING:
        yield "side_effects", f"env {config.env}, which gives the verdict itself"
    if config.browser_settle == "frame":
        yield "browser_settle_ms", "browser_settle frame, which waits for nothing"
    if config.gym_eval_number_range is not None:
        yield from ((name, "gym_eval_number_range, which says what trains") for name in ("gym_train_ratio", "gym_seed"))
    if config.algorithm == "sft" and config.eval_tasks:
        yield "tasks", "algorithm sft and eval_tasks: no task is trained on"
    if config.env == "gym" and config.gym_actor == "mini-agent":
        yield "gym_settle_ms", "gym_actor mini-agent, which acts by itself"
        yield from ((name, "gym_actor mini-agent, which makes the prompts itself") for name in PROMPT_ONLY)
    if config.algorithm in CREDITED and config.credit == "episode":
        yield "discount", "credit episode"
    if config.history_turns == 0:
        yield "history_older", "history_turns 0"


def _seconds(duration: str) -> float:
    """Of a number with its unit, as GBox writes durations."""
    number = duration.rstrip("hms")
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[duration.removeprefix(number)]


def _shown(value: object) -> str:
    return "unset" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"


def _contradictions(config: ExperimentConfig) -> list[str]:
    found = []
    if config.max_steps_off_policy and config.dynamic_sampling_rounds:
        found.append(
            "dynamic_sampling_rounds collects again within a step, which max_steps_off_policy has no place for: set one to 0"
        )
    if config.max_steps_off_policy and config.env == "adb":
        found.append(
            "max_steps_off_policy would leave evaluations without devices, which the episodes beside training hold: set it to 0"
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
    if config.env == "pods" and config.pods_expires_seconds <= config.max_task_time_seconds:
        found.append("pods_expires_seconds must exceed max_task_time_seconds: pods would end while they are in use")
    if config.env == "gbox" and _seconds(config.gbox_expires_in) <= config.max_task_time_seconds:
        found.append("gbox_expires_in must exceed max_task_time_seconds: boxes would end while they are in use")
    if config.max_turn_time_seconds > config.max_task_time_seconds:
        found.append("max_turn_time_seconds exceeds max_task_time_seconds")
    return found
