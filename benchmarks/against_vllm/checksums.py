"""SHA-256 of a model's tensors, in vLLM's worker and of the files that were sent there.

vLLM computes the projections of queries, keys and values as one tensor, and those of gate and up, and calls some by
other names: both sides are brought to vLLM's. Run in the server's environment, so nothing of cuarl is imported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch

FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
"""Tensors of vLLM's, and those whose rows they have, one after the other."""
RENAMED = (
    ("model.language_model.", "language_model.model."),
    ("model.visual.", "visual."),
    ("lm_head.", "language_model.lm_head."),
)


class Checksums:
    """Mixed into vLLM's worker by ``--worker-extension-cls``; called by ``/collective_rpc``."""

    def cuarl_checksums(self) -> dict[str, str]:
        """SHA-256 of every parameter, by vLLM's name."""
        return digests((name, [value]) for name, value in self.model_runner.get_model().named_parameters())  # type: ignore[attr-defined]


def expected(weights: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """The same for the tensors of a checkpoint."""
    named = {_renamed(name): value for name, value in weights.items()}
    whole: dict[str, dict[int, torch.Tensor]] = {}
    for name, value in named.items():
        fused, place = _fused(name)
        whole.setdefault(fused, {})[place] = value
    return digests((name, [parts[i] for i in sorted(parts)]) for name, parts in whole.items())


def digests(tensors: Iterable[tuple[str, list[torch.Tensor]]]) -> dict[str, str]:
    """SHA-256 of the bytes of each list of tensors, one after the other."""
    with ThreadPoolExecutor(8) as threads:
        return dict(threads.map(_digest, tensors))


def _digest(named: tuple[str, list[torch.Tensor]]) -> tuple[str, str]:
    found = hashlib.sha256()
    for value in named[1]:
        found.update(value.detach().contiguous().cpu().view(torch.uint8).numpy().data)
    return named[0], found.hexdigest()


def _renamed(name: str) -> str:
    return next((new + name[len(old) :] for old, new in RENAMED if name.startswith(old)), name)


def _fused(name: str) -> tuple[str, int]:
    """The tensor of vLLM's that ``name`` is in, and its place there."""
    for whole, parts in FUSED.items():
        for i, part in enumerate(parts):
            if f".{part}." in name and name.startswith("language_model."):
                return name.replace(f".{part}.", f".{whole}."), i
    return name, 0
