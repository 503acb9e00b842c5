"""Rows to padded tensors, with the places of their image tokens, for Qwen-VL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from cuarl.policy.inputs import Inputs, Row, Side, arrange, check_placeholders, packed_answers, pad
from cuarl.policy.qwen_vl.images import Grid, ImageProcessor
from cuarl.policy.qwen_vl.positions import multi_axis_positions
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot


class Vision(NamedTuple):
    """What the image tokens of a batch stand for: encoded features, or pixels where the tower is trained.

    ``features`` (1 + levels, N, D): the embeddings of N image tokens, then what deeper levels add to the first layers.
    ``pixels`` (patches, values) float32.
    """

    features: torch.Tensor | None
    pixels: torch.Tensor | None
    grids: tuple[Grid, ...]
    index: torch.Tensor
    """(N,) int64: where the image tokens are in the flattened (P, L) prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QwenInputs(Inputs):
    """A batch with positions, (3, rows, tokens) int64; ``answer_start`` (P,) is the one behind each prompt."""

    prompt_positions: torch.Tensor
    answer_start: torch.Tensor
    vision: Vision | None

    @property
    def answer_positions(self) -> torch.Tensor:
        """(3, B, T): text advances all axes together."""
        steps = torch.arange(self.answer_ids.shape[1], device=self.answer_start.device)
        return (self.answer_start[self.prompt_of, None] + steps).expand(3, -1, -1)


def collate_tokens(
    rows: Sequence[Row], images: ImageProcessor, special: SpecialIds, side: Side, *, pack: bool
) -> tuple[QwenInputs, tuple[Screenshot, ...]]:
    """Pad and place everything but the pictures, which are returned in the order their tokens appear.

    ``vision.features`` and ``vision.pixels`` are left None. Raises ValueError if a row's image tokens and screenshots
    don't agree.
    """
    prompts = arrange(rows, share=True, pack=pack)
    ids, mask = pad([r.prompt_ids for r in prompts.rows], special.pad, side)
    screens = tuple(s for r in prompts.rows for s in r.screenshots)
    grids = tuple(images.grid(s.width, s.height) for s in screens)
    is_image = ids == special.image
    check_placeholders(prompts.rows, special.image, lambda width, height: images.grid(width, height).tokens)
    positions, after = multi_axis_positions(is_image, mask, grids)
    answers, answer_mask = pad([r.answer_ids for r in rows], special.pad, "right")
    tokens = torch.arange(mask.shape[1])
    vision = Vision(None, None, grids, is_image.flatten().nonzero()[:, 0]) if screens else None
    inputs = QwenInputs(
        prompt_ids=ids,
        prompt_mask=mask,
        prompt_positions=positions,
        last=(mask * tokens).amax(1),
        vision=vision,
        prompt_of=torch.tensor(prompts.of, dtype=torch.long),
        answer_ids=answers,
        answer_mask=answer_mask,
        answer_start=after,
        packed=packed_answers(rows, prompts, mask),
    )
    return inputs, screens
