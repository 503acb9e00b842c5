"""Rules of policies that are sampled from, or trained, elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig

_NOT_TINKER = (
    "device", "sampler_device", "dtype", "gradient_checkpointing", "activation_gib", "kv_cache_gib", "micro_batch_tokens",
    "lora_alpha", "train_vision", "kl_penalty_coef", "entropy_coef", "model_base_url", "load_checkpoint_path",
    "save_total_limit",
)  # fmt: skip
"""What the service decides itself or has no means for."""
_LEARNT_BY_TINKER = frozenset({
    "algorithm", "reward", "advantage_normalization", "credit", "credit_lambda", "discount", "loss_reduction",
    "loss_constant_tokens", "mask_truncated", "clip_low", "clip_high", "sft_runs", "sft_min_reward",
    "kl_penalty_coef", "entropy_coef",
})  # fmt: skip
"""Options of algorithms that can be honoured there (the last two are refused above)."""
_TRAINED_BY_TINKER = ("grpo", "sft")
_UNUSED_BY_LOSS = {"ppo": (), "importance_sampling": ("clip_low", "clip_high"), "cispo": ("clip_low",)}


def problems(config: ExperimentConfig) -> list[str]:
    """Say what is wrong, one sentence each; empty if nothing is."""
    return [*_endpoint(config), *_tinker(config)]


def _endpoint(config: ExperimentConfig) -> list[str]:
    if config.model_base_url is None:
        given = [name for name in ("served_model_name", "rescore", "keep_adapters") if _given(config, name)]
        return [f"{name} has no effect without model_base_url; leave it out" for name in given]
    if not config.model_base_url.startswith(("http://", "https://")):
        return [f'model_base_url "{config.model_base_url}" is no URL such as http://localhost:8000/v1']
    return [
        f"{name} needs the sampler in this process, and model_base_url names another: leave one out"
        for name in ("max_steps_off_policy", "sampler_device", "kv_cache_gib")
        if getattr(config, name)
    ]


def _tinker(config: ExperimentConfig) -> list[str]:
    if config.trainer == "local":
        idle = ["tinker_loss"] if _given(config, "tinker_loss") else []
        return [f"{name} has no effect with trainer local; leave it out" for name in idle]
    found = [f"{name} has no effect with trainer tinker; leave it out" for name in _NOT_TINKER if _given(config, name)]
    from cuarl.config.schema import AlgorithmFields, OptimFields

    known = _LEARNT_BY_TINKER | {
        "max_steps", "learning_rate", "num_substeps", "max_grad_norm", "weight_decay", "adam_beta1", "adam_beta2", "adam_eps",
        *_NOT_TINKER,
    }  # fmt: skip
    others = [n for fields in (AlgorithmFields, OptimFields) for n in fields.model_fields if n not in known]
    found += [f"{name} is not supported with trainer tinker; leave it out" for name in others if _given(config, name)]
    found += [
        f"{name} has no effect with tinker_loss {config.tinker_loss}; leave it out"
        for name in _UNUSED_BY_LOSS[config.tinker_loss]
        if _given(config, name)
    ]
    if config.temperature != 1.0:
        found.append(
            f"trainer tinker gives log-probabilities at temperature 1, so temperature can't be {config.temperature:g}"
        )
    if not config.use_lora:
        found.append("trainer tinker trains LoRA adapters only, so use_lora must be true")
    if config.lora_rank & (config.lora_rank - 1):
        found.append(f"trainer tinker takes powers of two as lora_rank, not {config.lora_rank}")
    if config.lora_target_option == "custom":
        found.append("trainer tinker can't adapt modules by name: choose another lora_target_option")
    if config.algorithm == "sft" and _given(config, "tinker_loss"):
        found.append("tinker_loss has no effect with algorithm sft; leave it out")
    if config.algorithm not in _TRAINED_BY_TINKER:
        found.append(f"trainer tinker trains {' and '.join(_TRAINED_BY_TINKER)}, not {config.algorithm}")
    if config.top_p < 1 or config.top_k > 0:
        found.append("trainer tinker needs samples of the whole distribution: leave top_p and top_k out")
    return found


def _given(config: ExperimentConfig, name: str) -> bool:
    return bool(getattr(config, name) != type(config).model_fields[name].default)
