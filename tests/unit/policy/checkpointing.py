"""Gradient checkpointing of a model, under either of the names that transformers has given it."""

from __future__ import annotations

from typing import Any


def compute_layers_again(base: Any, *, reentrant: bool = False) -> None:
    enable = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
    enable({"use_reentrant": reentrant})
