"""Adapters exchanged while a policy is in use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cuarl.errors import CheckpointError
from cuarl.policy.adapters.files import exchange
from cuarl.policy.base import Policy

P = TypeVar("P", bound=Policy)

_SHAPE = ("r", "lora_alpha", "target_modules", "rank_pattern", "alpha_pattern", "use_rslora", "use_dora")


def swap_adapter(policy: P | None, folder: Path, load: Callable[[], P]) -> P:
    """``policy`` with the adapter in ``folder`` as its weights, if it has one of the same shape; else a fresh policy.

    ``load`` makes that fresh one. Whoever calls this says ``updated()`` afterwards. Raises CheckpointError for a folder
    without an adapter, or one that does not fit; ``policy`` is then as it was.
    """
    if not (folder / "adapter_config.json").is_file():
        raise CheckpointError("no adapter here (no adapter_config.json)", where=str(folder))
    if policy is None or not policy.has_adapter or not _same_shape(policy, folder):
        return load()
    exchange(policy.model, folder)
    return policy


def _same_shape(policy: Policy, folder: Path) -> bool:
    wanted = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    here = next(iter(policy.model.peft_config.values())).to_dict()
    return all(_plain(wanted.get(name)) == _plain(here.get(name)) for name in _SHAPE)


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, list | set | tuple) else value
