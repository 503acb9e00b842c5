"""The parts of a training run, put together from a configuration: the model, the learner, the loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cuarl.config.load import Resolved
from cuarl.config.rules import LORA_ONLY, default_of, value_of
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.policy.load import in_four_bits, load_policy
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.train.batch import BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.credit import ScreenCredit
from cuarl.train.curriculum import CurriculumConfig
from cuarl.train.estimation import Baseline
from cuarl.train.gigpo import AnchorCredit
from cuarl.train.loop import LoopConfig
from cuarl.train.loss import LossConfig
from cuarl.train.processes import sharded
from cuarl.train.rejection import Rejection
from cuarl.train.replay import ReplayConfig
from cuarl.train.schedule import OptimConfig
from cuarl.train.shaping import Shaping
from cuarl.train.value import CriticConfig
from cuarl.workflow.targets import checkpoint

if TYPE_CHECKING:
    from accelerate import Accelerator


# --- what is trained -----------------------------------------------------------------------------------------------


def model_spec(resolved: Resolved, device: str) -> ModelSpec:
    """The policy to train.

    Raises ConfigError for options that the checkpoint it starts from leaves without effect, and for a server beside an
    adapter whose base is in four bits.
    """
    spec = _trained(resolved, device)
    if resolved.config.model_base_url is not None and in_four_bits(spec):
        raise ConfigError(
            "the adapter was trained on a base in four bits, and a server samples from a base of its own",
            where="--model-base-url",
            hint="--quantization none, or leave --model-base-url out",
        )
    return spec


def _trained(resolved: Resolved, device: str) -> ModelSpec:
    config = resolved.config
    start = checkpoint(Path(config.load_checkpoint_path)) if config.load_checkpoint_path else None
    if start is not None and start.adapter is not None:
        given = [name for name in (*LORA_ONLY, "train_vision") if _asked(resolved, name)]
        if given or not config.use_lora:
            what = f"{given[0]} has no effect" if given else "use_lora can't be false"
            raise ConfigError(
                f"{what}: the checkpoint is an adapter, which is trained on as it is", where=start.adapter
            )
        return _spec(config, start.model or config.model_name, device, adapter=start.adapter, train="adapter")
    base = start.model or config.model_name if start else config.model_name
    if not config.use_lora:
        # the optimiser needs them in float32 anyway, so 16 bits would save no memory (``policy.master``)
        dtype = "float32" if config.dtype == "auto" else config.dtype
        return _spec(config, base, device, train="full", train_vision=config.train_vision, dtype=dtype)
    custom = config.lora_target_option == "custom"
    lora = LoraSpec(
        rank=config.lora_rank,
        alpha=config.lora_alpha,
        vision=config.train_vision,
        seed=config.seed,
        targets=config.lora_target_modules if custom else config.lora_target_option,
    )
    return _spec(config, base, device, lora=lora, train="adapter")


def _asked(resolved: Resolved, name: str) -> bool:
    """Whether somebody wants a field to be what it is.

    A run's own file and a printed one have every field, usual ones too.
    """
    usual = value_of(resolved.config, name) == default_of(resolved.config, name)
    return resolved.sources[name].startswith("-") or not usual


def _spec(config: ExperimentConfig, model: str, device: str, **fields: object) -> ModelSpec:
    common = {
        "model": model,
        "dtype": config.dtype,
        "quantization": config.quantization,
        "device": device,
        "kv_cache_gib": config.local_policy.kv_cache_gib,
        "trust_remote_code": config.trust_remote_code,
    }
    return ModelSpec.model_validate(common | fields)


def check_alone(config: ExperimentConfig, processes: int) -> None:
    """Raise ConfigError if there are several processes and an option needs a single one.

    A sampler's device is the main process's, which collects for all where that is asynchronous, and only then.
    """
    if processes > 1 and config.local_policy.sampler_device and not config.max_steps_off_policy:
        raise ConfigError(
            "--sampler-device works in one process, and these are several",
            where="--processes",
            hint="--max-steps-off-policy 1, with which the main process collects for all; or leave it out",
        )


def load_trained(resolved: Resolved, accelerator: Accelerator) -> TransformersPolicy:
    """Load the policy to train onto this process's device. Raises ConfigError as ``check_shards`` does."""
    config = resolved.config
    several = accelerator.num_processes > 1 and config.device == "auto"
    spec = model_spec(resolved, str(accelerator.device) if several else config.device)
    check_shards(spec, sharded())
    return load_policy(spec)


def check_shards(spec: ModelSpec, shards: bool) -> None:
    """Raise ConfigError if layers in four bits are to be cut into shards."""
    if shards and in_four_bits(spec):
        raise ConfigError(
            "weights in four bits can't be cut into shards", where="--accelerate fsdp2", hint="--accelerate ddp"
        )


def learner_config(config: ExperimentConfig) -> LearnerConfig:
    """How the learner has to learn."""
    learning = config.learning
    objectives = {"sft": "imitation", "dagger": "imitation", "rejection": "rejection"}
    objective = objectives.get(config.algorithm.type, "reward")
    shards = sharded()
    if shards and (config.model_base_url or config.max_steps_off_policy):
        other = "policy openai" if config.model_base_url else "max_steps_off_policy"
        raise ConfigError(
            f"{other} needs whole weights in every process", where="--accelerate fsdp2", hint="--accelerate ddp"
        )
    return LearnerConfig.model_validate(
        {
            "objective": objective,
            "sharded": shards,
            "max_steps": config.max_steps,
            "seed": config.seed,
            "gradient_checkpointing": config.local_trainer.gradient_checkpointing,
            "activation_gib": config.local_trainer.activation_gib,
            "compute_post_kl": config.compute_post_kl,
            "rejection": Rejection(rule=learning.rejection_rule, threshold=learning.reward_threshold),
            "replay": ReplayConfig(
                per_task=learning.replay_per_task, max_age=learning.replay_max_age, seed=config.seed
            ),
            "curriculum": _curriculum(config),
            "hint_turns": learning.hint_turns,
            "imitation_coef": learning.imitation_coef,
            "entropy_floor": learning.entropy_floor,
            "batch": batch_config(config),
            "loss": _loss_config(config),
            "reference": learning.kl_reference,
            "optim": OptimConfig(
                learning_rate=config.effective_learning_rate,
                lr_schedule=config.lr_schedule,
                warmup_steps=config.warmup_steps,
                max_grad_norm=config.max_grad_norm,
                weight_decay=config.weight_decay,
                adam_beta1=config.adam_beta1,
                adam_beta2=config.adam_beta2,
                adam_eps=config.adam_eps,
            ),
        }
    )


def loop_config(config: ExperimentConfig) -> LoopConfig:
    """How long training takes, and what is done between its steps."""
    return LoopConfig(
        max_steps=config.max_steps,
        eval_every=config.eval_every,
        save_every=config.save_every,
        skip_baseline=config.skip_baseline,
        validates=config.validation_split > 0,
    )


def batch_config(config: ExperimentConfig) -> BatchConfig:
    """How groups become rows to learn from."""
    learning = config.learning
    baselines: Mapping[str, Baseline] = {"rloo": "leave-one-out", "reinforce++": "batch", "ppo": "critic"}
    in_reward = config.kl_penalty_coef if learning.kl_in == "reward" else 0.0
    return BatchConfig(
        advantage=learning.advantage_normalization,
        baseline=baselines.get(config.algorithm.type, "group"),
        credit="anchor" if config.algorithm.type == "gigpo" else learning.credit,
        screen=ScreenCredit(trace_lambda=learning.credit_lambda, discount=learning.discount),
        anchor=AnchorCredit(anchor=learning.gigpo_anchor, weight=learning.gigpo_weight, discount=learning.discount),
        critic=CriticConfig(
            level=learning.critic_level,
            trace_lambda=learning.gae_lambda,
            discount=learning.discount,
            clip=learning.value_clip,
            trunk=learning.critic_trunk,
            coef=learning.value_loss_coef,
            learning_rate=learning.value_learning_rate,
            warmup_steps=learning.critic_warmup_steps,
            seed=config.seed,
        ),
        kl_coef=in_reward,
        kl_estimator=learning.kl_estimator,
        shaping=shaping(config),
        reduction=learning.loss_reduction,
        constant_tokens=learning.loss_constant_tokens,
        mask_truncated=learning.mask_truncated,
        num_substeps=config.num_substeps,
        num_epochs=config.num_epochs,
        max_tokens=config.local_trainer.micro_batch_tokens,
        pack=config.local_trainer.pack_turns,
    )


def shaping(config: ExperimentConfig) -> Shaping:
    """How rewards are changed before they are compared."""
    learning = config.learning
    return Shaping(
        shortest_path=learning.shortest_path_coef,
        overlong_buffer=learning.overlong_buffer,
        overlong_penalty=learning.overlong_penalty,
        max_tokens=config.max_tokens,
    )


def _loss_config(config: ExperimentConfig) -> LossConfig:
    learning = config.learning
    return LossConfig(
        surrogate="weights" if config.algorithm.type == "cispo" else "clip",
        ratio="answer" if config.algorithm.type == "gspo" else "token",
        clip_low=learning.clip_low,
        clip_high=learning.clip_high,
        decoupled=learning.decoupled,
        importance_cap=learning.importance_cap,
        kl_penalty_coef=config.kl_penalty_coef,
        kl_in=learning.kl_in,
        kl_estimator=learning.kl_estimator,
        entropy_coef=learning.entropy_coef,
    )


def _curriculum(config: ExperimentConfig) -> CurriculumConfig | None:
    learning = config.learning
    if learning.curriculum == "none":
        return None
    return CurriculumConfig(
        kind=learning.curriculum,
        patience=learning.curriculum_patience,
        cooldown=learning.curriculum_cooldown,
        seed=config.seed,
    )
