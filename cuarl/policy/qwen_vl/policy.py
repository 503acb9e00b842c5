"""A Qwen-VL policy: prompts and pictures are encoded once, layers are run one by one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import torch

from cuarl.policy import companions
from cuarl.policy.base import ScoreOptions, TokenScores
from cuarl.policy.inputs import Inputs, Row, Side
from cuarl.policy.jobs import Job
from cuarl.policy.qwen_vl import unpadded
from cuarl.policy.qwen_vl.decoder import Decoder
from cuarl.policy.qwen_vl.engine.engine import Engine
from cuarl.policy.qwen_vl.engine.fits import fits
from cuarl.policy.qwen_vl.generate import answer_by_layers
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.inputs import QwenInputs, collate_tokens
from cuarl.policy.qwen_vl.render import QwenRenderer
from cuarl.policy.qwen_vl.score import score
from cuarl.policy.qwen_vl.vision import FeatureCache, VisionTower
from cuarl.policy.special import SpecialIds
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.policy.work import Work
from cuarl.types import Screenshot

_SMALL = 1 << 26
"""Weights of a model up to which one thread computes a part of a batch sooner than several together."""


class QwenVLPolicy(TransformersPolicy):
    """One policy of a Qwen-VL family in this process.

    ``kv_bytes`` bounds the keys and values that sampling on a GPU keeps; None: half of the memory that is free then.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        images: ImageProcessor,
        special: SpecialIds,
        *,
        name: str,
        revision: str | None = None,
        train_vision: bool = False,
        cache_bytes: int | None = None,
    ) -> None:
        renderer = QwenRenderer(tokenizer, images, special)
        super().__init__(model, tokenizer, renderer, name=name, revision=revision)
        self.images = images
        room = _room_for_features(self.device) if cache_bytes is None else cache_bytes
        self.vision = VisionTower(self.base.model.visual, images, trained=train_vision, cache_bytes=room)
        self.decoder = Decoder(self.base.model.language_model, self.base.lm_head)
        self.kv_bytes: int | None = None
        self._engine: Engine | None = None
        self._has_engine: bool | None = None
        self._answering_s = 0.0

    @property
    def unpadded(self) -> bool:
        """Whether answers can be scored without padding: on a GPU or a CPU, by layers that are known."""
        return self.device.type in ("cuda", "cpu") and unpadded.fits(self)

    def in_lanes(self, screenshots: Iterable[Screenshot]) -> bool:
        """On a CPU, of a small model without padding, with small pictures."""
        if self.device.type != "cpu" or not self.unpadded or self.vision.trained:
            return False
        small = sum(p.numel() for p in self.base.parameters()) <= _SMALL
        return small and all(map(self.vision.is_small, screenshots))

    def engine(self) -> Engine | None:
        """What samples from this policy; None where only its own layers can (see ``fits``)."""
        if self._has_engine is None:
            self._has_engine = fits(self)
        if self._engine is None and self._has_engine:
            self._engine = Engine(self, budget_bytes=self.kv_bytes)
        return self._engine

    def answer(self, jobs: Sequence[Job]) -> None:
        """Sample an answer to every job: by the engine where there is one."""
        started = time.perf_counter()
        with self.on_device():
            engine = self.engine()
            if engine is not None:
                engine.generate(jobs)
            else:
                answer_by_layers(self, jobs)
        self._answering_s += time.perf_counter() - started

    def score(self, inputs: Inputs, temperature: torch.Tensor, options: ScoreOptions) -> TokenScores:
        """Score the real answer tokens of a batch (see ``Policy.score``)."""
        assert isinstance(inputs, QwenInputs), "this policy's own"
        with self.on_device():
            return score(self, inputs, temperature, options)

    def collate(self, rows: Sequence[Row], *, padding: Side = "left", pack: bool = False) -> QwenInputs:
        """Pad, place and encode ``rows`` into a batch on this policy's device (see ``Policy.collate``).

        A frozen vision tower runs here, without gradients and once per screenshot; a trained one runs in the scorer.
        """
        inputs, screens = collate_tokens(rows, self.images, self.special, padding, pack=pack)
        if inputs.vision is not None:
            if self.vision.trained:
                seen = inputs.vision._replace(pixels=self.images.patches(screens))
            else:
                with self.on_device():
                    seen = inputs.vision._replace(features=self.vision.features(screens))
            inputs = replace(inputs, vision=seen)
        return inputs.to(self.device)

    def embed_prompts(self, inputs: QwenInputs) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Embeddings (P, L, D) of prompts with pictures in place, and what deeper levels add (levels, N, D)."""
        hidden = self.decoder.embed(inputs.prompt_ids)
        seen = inputs.vision
        if seen is None:
            return hidden, None
        features = seen.features
        if features is None and seen.pixels is not None:
            features = self.vision.encode(seen.pixels, seen.grids)
        assert features is not None, "collate gives features or pixels"
        features = features.to(hidden.dtype)
        flat = hidden.reshape(-1, hidden.shape[-1]).index_copy(0, seen.index, features[0])
        return flat.view_as(hidden), features[1:]

    def updated(self, version: int | None = None) -> None:
        """Say that the weights have changed (see ``Policy.updated``)."""
        super().updated(version)
        if self.vision.trained:
            self.vision.cache.clear()

    def save_companions(self, folder: str) -> None:
        """Write tokenizer and image processor into ``folder``, beside the weights."""
        companions.write(folder, self.tokenizer, self.images.processor)

    def with_model(self, model: Any, memo: dict[int, object]) -> Self:
        """A copy around ``model`` (see ``Policy.with_model``)."""
        if self._engine is not None:
            memo[id(self._engine)] = None
        for cache in (self.vision.cache, self.vision.kept):
            memo[id(cache)] = FeatureCache(cache.limit_bytes)
        made = super().with_model(model, memo)
        made._has_engine = None  # it may be on another kind of device
        return made

    def forget_pictures(self) -> None:
        """Encode every picture anew from now on."""
        self.vision.set_aside()

    def recall_pictures(self) -> None:
        """Know again what was known before that, where it changes no bit."""
        self.vision.bring_back()

    def forget_prompts(self) -> None:
        """Compute every prompt anew from now on: what is sampled then doesn't depend on what was sampled before."""
        if self._engine is not None:
            self._engine.forget()

    def take_work(self) -> Work:
        """What was computed since this was last called. Without an engine prompts and tokens are not counted."""
        work = Work() if self._engine is None else self._engine.take_work()
        work.pictures, self.vision.encoded = self.vision.encoded, 0
        work.seconds, self._answering_s = self._answering_s, 0.0
        return work

    def release_memory(self, keep_bytes: int = 0) -> None:
        """Give back the memory that only sampling needs, if it is more than ``keep_bytes``."""
        if self._engine is not None and self._engine.nbytes > keep_bytes:
            self._engine.release()


def _room_for_features(device: torch.device) -> int:
    """Bytes of encoded pictures to keep: 512 MiB, or a sixteenth of a GPU's memory.

    A screen of 1080x2400 takes 40 MiB at the width of a 2B model, and those of a step are read again in each turn and
    in the update.
    """
    if device.type != "cuda":
        return 512 << 20
    return max(512 << 20, int(torch.cuda.get_device_properties(device).total_memory) // 16)
