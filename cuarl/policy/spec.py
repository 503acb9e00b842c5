"""What policy to load: plain records, importable without torch."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from cuarl.types import Record

LoraTargets = Literal["attention", "mlp", "attention+mlp", "all-linear"]


class LoraSpec(Record):
    """A fresh low-rank adapter (Hu et al., 2021, arXiv:2106.09685)."""

    rank: PositiveInt = 16
    alpha: PositiveFloat | None = None
    """Scale of the update, divided by the rank; twice the rank if unset."""
    targets: LoraTargets | tuple[str, ...] = "all-linear"
    """Which linear layers of the language model, by group or by module name (``("q_proj", "v_proj")``)."""
    vision: bool = False
    """Adapt the linear layers of the vision tower too. Screens must then be encoded anew after each update."""
    dropout: float = 0.0
    """Above zero, sampled and trained distributions differ: the ratio of the first update is no longer 1."""
    seed: int = 0
    """Seed of the initial values."""


class ModelSpec(Record):
    """A policy: a base model, what is put on it, and what of it is trained."""

    model: str = "tiny"
    """Folder, hub id (``Qwen/Qwen3-VL-8B-Instruct``), or ``tiny`` for the shipped base."""
    revision: str | None = None
    """Commit, tag or branch of a hub id."""
    adapter: str | None = None
    """Folder of a PEFT adapter to put on the base."""
    lora: LoraSpec | None = None
    """A fresh adapter; not together with ``adapter``."""
    train: Literal["adapter", "full", "nothing"] = "nothing"
    """Which parameters require gradients."""
    train_vision: bool = False
    """With ``train: full``, train the vision tower too."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """``auto``: float32 on a CPU, bfloat16 on an accelerator."""
    quantization: Literal["auto", "none", "nf4"] = "auto"
    """``nf4`` keeps the linear layers of the language model, frozen, in four bits; ``auto`` does so if ``adapter`` was
    trained on such a base."""
    device: str = "auto"
    """``auto``: the first accelerator if there is one, else the CPU."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """Implementation of attention in the language model."""
    min_pixels: PositiveInt | None = None
    """Screens with fewer pixels are enlarged; the checkpoint's setting if unset."""
    max_pixels: PositiveInt | None = None
    """Screens with more pixels are shrunk; the checkpoint's setting if unset."""
    kv_cache_gib: PositiveFloat | None = None
    """Keys and values (GiB) that sampling on a GPU may keep; half of the free memory if unset."""
    trust_remote_code: bool = False
    """Run code that comes with the model."""
    name: str = ""
    """Name in records; derived from the model and the adapter if empty."""
