"""Which parts of a model read pictures and which speak, for any family of transformers."""

from __future__ import annotations

from typing import Any

from torch import nn


class Modalities:
    """Tells by a module's or parameter's name what it belongs to. ``model`` is without an adapter."""

    def __init__(self, model: nn.Module) -> None:
        known: Any = model
        decoder, heads = known.get_decoder(), (known.get_output_embeddings(),)
        names = [(name, module) for name, module in model.named_modules() if name]
        self._decoder = next((f"{name}." for name, module in names if module is decoder), None)
        self._heads = tuple(f"{name}." for name, module in names if any(module is head for head in heads))

    def language(self, name: str) -> bool:
        """Whether it belongs to the language model, its head left out."""
        return self._decoder is not None and name.startswith(self._decoder)

    def vision(self, name: str) -> bool:
        """Whether it belongs to what turns pictures into embeddings: the tower, and what connects it."""
        return not self.language(name) and not name.startswith(self._heads)
