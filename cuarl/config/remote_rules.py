"""Rules of policies that are sampled from, or trained, elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuarl.config.learning import Learning, inner
from cuarl.config.places import LocalPolicy, OpenAIPolicy, TinkerTrainer

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig

_NOT_TINKER = (
    "device",
    "dtype",
    "quantization",
    "policy.sampler_device",
    "policy.kv_cache_gib",
    "lora_alpha",
    "train_vision",
    "save_total_limit",
)
"""What the service decides itself or has no means for."""
_LEARNT_BY_TINKER = frozenset({
    "advantage_normalization", "credit", "credit_lambda", "discount", "loss_reduction", "loss_constant_tokens",
    "mask_truncated", "kl_reference", "kl_in", "kl_estimator", "clip_low", "clip_high", "sft_runs",
    "sft_min_reward", "sft_weights",
})  # fmt: skip
"""Options of algorithms that can be honoured there."""
_MOVED_BY_TINKER = frozenset(
    {
        "max_steps",
        "learning_rate",
        "num_substeps",
        "max_grad_norm",
        "weight_decay",
        "adam_beta1",
        "adam_beta2",
        "adam_eps",
    }
)
"""How weights move there."""
_TRAINED_BY_TINKER = ("grpo", "sft")
_UNUSED_BY_LOSS = {"ppo": (), "importance_sampling": ("clip_low", "clip_high"), "cispo": ("clip_low",)}


def problems(config: ExperimentConfig) -> list[str]:
    """Say what is wrong, one sentence each; empty if nothing is."""
    return [*_endpoint(config), *_tinker(config)]


def _endpoint(config: ExperimentConfig) -> list[str]:
    if config.server_sleeps and config.max_steps_off_policy:
        return [
            "policy.sleep ends sampling while something is trained, and max_steps_off_policy does both: leave one out"
        ]
    if config.quantization == "nf4" and not isinstance(config.policy, LocalPolicy):
        return [
            "quantization nf4 is for a policy sampled in this process: a server samples from a base of its own, and "
            "what is trained would not be what was sampled; leave it out, or take policy local"
        ]
    if not isinstance(config.policy, OpenAIPolicy):
        return []
    url = config.policy.base_url
    if url is None:
        return ["policy openai needs policy.base_url, such as http://localhost:8000/v1"]
    each = [one.strip() for one in url.split(",")]
    for one in each:
        if not one.startswith(("http://", "https://")):
            return [f'policy.base_url "{one}" is no URL such as http://localhost:8000/v1']
    if len({one.rstrip("/") for one in each}) < len(each):
        return [f"policy.base_url names a server twice: {url}"]
    if config.max_steps_off_policy and config.policy.rescore:
        return [
            "policy.rescore computes with the policy that is trained, which max_steps_off_policy does at the same "
            "time: leave one out"
        ]
    return []


def _tinker(config: ExperimentConfig) -> list[str]:
    if not isinstance(config.trainer, TinkerTrainer):
        return []
    algorithm, loss = config.algorithm.type, config.trainer.loss
    found = [f"{path} has no effect with trainer tinker; leave it out" for path in _NOT_TINKER if _given(config, path)]
    if not isinstance(config.policy, LocalPolicy):
        given = "policy.base_url" if isinstance(config.policy, OpenAIPolicy) else "policy vllm (policy.python)"
        found.append(f"{given} has no effect with trainer tinker, which samples itself; leave it out")
    others = [f"algorithm.{inner(algorithm, name)}" for name in Learning.model_fields if name not in _LEARNT_BY_TINKER]
    others += [name for name in type(config).optimisation() if name not in _MOVED_BY_TINKER]
    found += [f"{path} is not supported with trainer tinker; leave it out" for path in others if _given(config, path)]
    found += [
        f"algorithm.{name} has no effect with trainer.loss {loss}; leave it out"
        for name in _UNUSED_BY_LOSS[loss]
        if _given(config, f"algorithm.{name}")
    ]
    if config.kl_penalty_coef and config.learning.kl_in == "loss":
        found.append("trainer tinker has no such term in its losses: algorithm.kl_in reward, or no kl_penalty_coef")
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
    if algorithm == "sft" and loss != "ppo":
        found.append("trainer.loss has no effect with algorithm sft; leave it out")
    if algorithm not in _TRAINED_BY_TINKER:
        found.append(f"trainer tinker trains {' and '.join(_TRAINED_BY_TINKER)}, not {algorithm}")
    if config.top_p < 1 or config.top_k > 0:
        found.append("trainer tinker needs samples of the whole distribution: leave top_p and top_k out")
    return found


def _given(config: ExperimentConfig, path: str) -> bool:
    name, _, field = path.partition(".")
    record: Any = getattr(config, name) if field else config
    known = type(record).model_fields.get(field or name)
    return known is not None and bool(getattr(record, field or name) != known.default)
