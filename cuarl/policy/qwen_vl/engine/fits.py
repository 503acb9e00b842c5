"""Whether a policy can be sampled from by the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from cuarl.policy.nf4.linear import Linear4

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

_LARGEST_COPY = 1 << 30
"""Bytes of fused weights beyond which, on a CPU, the memory is worth more than the time."""
_PRODUCTS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def fits(policy: QwenVLPolicy) -> bool:
    """Whether its layers are those that the engine computes, and a fused copy of their weights fits beside them.

    Not mixtures of experts, sliding windows, layers in shards, weights that something else quantised, or adapters
    other than plain LoRA; and on a CPU float32 alone, in which merging an adapter is exact up to roundings of that
    size.
    """
    language_model = policy.base.model.language_model
    if not plain_layers(language_model, policy.width):
        return False
    device = policy.device
    if device.type == "cuda":
        free: int = torch.cuda.mem_get_info(device)[0]
        return _copy_bytes(language_model, unpacked=False) <= free // 2
    single: bool = policy.dtype == torch.float32
    return single and _copy_bytes(language_model, unpacked=True) <= _LARGEST_COPY


def _copy_bytes(language_model: Any, *, unpacked: bool) -> int:
    """Size of the fused copy; with ``unpacked`` it has weights in four bits, too, in the type of the others."""
    size = language_model.norm.weight.itemsize
    packed = [m for m in language_model.layers.modules() if isinstance(m, Linear4)]
    known = {id(p) for m in packed for p in m.parameters()}
    plain = (p for n, p in language_model.layers.named_parameters() if "lora_" not in n and id(p) not in known)
    whole = sum(m.in_features * m.out_features * size for m in packed) if unpacked else 0
    return int(whole + sum(p.nbytes for p in plain))


def plain_layers(language_model: Any, width: int) -> bool:
    """Whether layers are dense ones of the usual kind, with plain LoRA at most, and angles those of whole heads."""
    if language_model.config._attn_implementation != "sdpa" or not all(map(_plain_layer, language_model.layers)):
        return False
    weight = language_model.norm.weight
    probe = torch.zeros((1, 1, width), dtype=weight.dtype, device=weight.device)
    cos, _ = language_model.rotary_emb(probe, torch.zeros((3, 1, 1), dtype=torch.long, device=weight.device))
    # older releases of transformers gave angles an axis of their own
    return bool(cos.dim() == 3 and cos.shape[-1] == language_model.layers[0].self_attn.head_dim)


def _plain_layer(layer: Any) -> bool:
    attention, mlp = layer.self_attn, layer.mlp
    if hasattr(layer, "unshard") or getattr(attention, "sliding_window", None) is not None:
        return False
    products = [getattr(attention, n, None) or getattr(mlp, n, None) for n in _PRODUCTS]
    return all(_plain_product(p) for p in products) and type(getattr(mlp, "act_fn", None)).__name__ in _SILU


_SILU = ("SiLU", "SiLUActivation")


def _plain_product(module: Any) -> bool:
    base = getattr(module, "base_layer", module)
    plain = type(base) is torch.nn.Linear and base.weight.is_floating_point()
    if not plain and not isinstance(base, Linear4):
        return False
    if base is module:
        return True
    return hasattr(module, "lora_A") and not any(getattr(module, "use_dora", {}).values())
