"""Rows to padded tensors, with the places of their image tokens, for Qwen-VL."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cuarl.policy.inputs import ModelInputs, Row, Side, Vision, arrange, packed_answers, pad
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.positions import multi_axis_positions
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot


def collate_tokens(
    rows: Sequence[Row], images: ImageProcessor, special: SpecialIds, side: Side, *, pack: bool
) -> tuple[ModelInputs, tuple[Screenshot, ...]]:
    """Pad and place everything but the pictures, which are returned in the order their tokens appear.

    ``vision.features`` and ``vision.pixels`` are left None. Raises ValueError if a row's image tokens and screenshots
    don't agree.
    """
    prompts = arrange(rows, share=True, pack=pack)
    ids, mask = pad([r.prompt_ids for r in prompts.rows], special.pad, side)
    screens = tuple(s for r in prompts.rows for s in r.screenshots)
    grids = tuple(images.grid(s.width, s.height) for s in screens)
    is_image = ids == special.image
    check_placeholders(prompts.rows, images, special)
    positions, after = multi_axis_positions(is_image, mask, grids)
    answers, answer_mask = pad([r.answer_ids for r in rows], special.pad, "right")
    tokens = torch.arange(mask.shape[1])
    vision = Vision(None, None, grids, is_image.flatten().nonzero()[:, 0]) if screens else None
    inputs = ModelInputs(
        prompt_ids=ids, prompt_mask=mask, prompt_positions=positions, last=(mask * tokens).amax(1), vision=vision,
        prompt_of=torch.tensor(prompts.of, dtype=torch.long), answer_ids=answers, answer_mask=answer_mask,
        answer_start=after, packed=packed_answers(rows, prompts, mask),
    )  # fmt: skip
    return inputs, screens


def check_placeholders(rows: Sequence[Row], images: ImageProcessor, special: SpecialIds) -> None:
    """Raise ValueError unless each row has exactly the image tokens that its screenshots need."""
    for i, row in enumerate(rows):
        needed = sum(images.grid(s.width, s.height).tokens for s in row.screenshots)
        found = row.prompt_ids.count(special.image)
        if found != needed:
            raise ValueError(f"row {i} has {found} image tokens, but its {len(row.screenshots)} pictures need {needed}")
