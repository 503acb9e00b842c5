"""Rows of tokens and screenshots to padded tensors.

A batch keeps prompts and answers apart, and each distinct prompt once: the attempts of a group start on the same screen
with the same goal, so their prompt is encoded a single time in sampling as in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import torch

from cuarl.policy.images import Grid, ImageProcessor
from cuarl.policy.positions import multi_axis_positions
from cuarl.policy.special import SpecialIds
from cuarl.types import Screenshot

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt with its screenshots, in prompt order, and the answer that was sampled (empty before sampling)."""

    prompt_ids: tuple[int, ...]
    screenshots: tuple[Screenshot, ...] = ()
    answer_ids: tuple[int, ...] = ()


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


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """A padded batch of B rows over P distinct prompts of up to L tokens, with answers of up to T tokens.

    ``last`` (P,) is the index of each prompt's last token and ``answer_start`` (P,) the position behind it;
    ``prompt_of`` (B,) says which prompt a row continues.
    Masks are bool, True at real tokens. Positions are (3, rows, tokens) int64.
    """

    prompt_ids: torch.Tensor
    prompt_mask: torch.Tensor
    prompt_positions: torch.Tensor
    last: torch.Tensor
    vision: Vision | None
    prompt_of: torch.Tensor
    answer_ids: torch.Tensor
    answer_mask: torch.Tensor
    answer_start: torch.Tensor
    pictures: dict[str, torch.Tensor] | None = None
    """What the model's own forward pass takes for the pictures, where that is run (``plain``); positions and ``vision``
    are not made then."""

    def to(self, device: torch.device) -> ModelInputs:
        """The same batch on ``device``."""
        moved = {f.name: _to(getattr(self, f.name), device) for f in fields(self)}
        return ModelInputs(**moved)

    @property
    def answer_positions(self) -> torch.Tensor:
        """(3, B, T): text advances all axes together."""
        steps = torch.arange(self.answer_ids.shape[1], device=self.answer_start.device)
        return (self.answer_start[self.prompt_of, None] + steps).expand(3, -1, -1)

    @property
    def padded(self) -> bool:
        """Whether any prompt is shorter than the longest."""
        return bool((~self.prompt_mask).any())


def _to(value: Any, device: torch.device) -> Any:
    if isinstance(value, Vision):
        return Vision(*(_to(v, device) for v in value))
    if isinstance(value, dict):
        return {name: _to(v, device) for name, v in value.items()}
    return value.to(device) if isinstance(value, torch.Tensor) else value


class Prompts(NamedTuple):
    """The distinct prompts of some rows, and which of them each row has."""

    rows: list[Row]
    of: list[int]


def distinct_prompts(rows: Sequence[Row]) -> Prompts:
    """Prompts that agree in every token and every pixel are one."""
    found: dict[tuple[object, ...], int] = {}
    rows_out: list[Row] = []
    of = []
    for row in rows:
        key = (row.prompt_ids, *(s.digest for s in row.screenshots))
        if key not in found:
            found[key] = len(rows_out)
            rows_out.append(row)
        of.append(found[key])
    return Prompts(rows_out, of)


def pad(sequences: Sequence[Sequence[int]], fill: int, side: Side) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, longest) int64 ids and the bool mask of real tokens."""
    longest = max((len(s) for s in sequences), default=0)
    ids = torch.full((len(sequences), longest), fill, dtype=torch.long)
    mask = torch.zeros((len(sequences), longest), dtype=torch.bool)
    for i, s in enumerate(sequences):
        at = slice(longest - len(s), longest) if side == "left" else slice(0, len(s))
        ids[i, at] = torch.tensor(s, dtype=torch.long)
        mask[i, at] = True
    return ids, mask


def collate_tokens(
    rows: Sequence[Row], images: ImageProcessor, special: SpecialIds, side: Side
) -> tuple[ModelInputs, tuple[Screenshot, ...]]:
    """Pad and place everything but the pictures, which are returned in the order their tokens appear.

    ``vision.features`` and ``vision.pixels`` are left None. Raises ValueError if a row's image tokens and screenshots
    don't agree.
    """
    prompts, of = distinct_prompts(rows)
    ids, mask = pad([r.prompt_ids for r in prompts], special.pad, side)
    screens = tuple(s for r in prompts for s in r.screenshots)
    grids = tuple(images.grid(s.width, s.height) for s in screens)
    is_image = ids == special.image
    check_placeholders(prompts, images, special)
    positions, after = multi_axis_positions(is_image, mask, grids)
    answers, answer_mask = pad([r.answer_ids for r in rows], special.pad, "right")
    tokens = torch.arange(mask.shape[1])
    vision = Vision(None, None, grids, is_image.flatten().nonzero()[:, 0]) if screens else None
    inputs = ModelInputs(
        prompt_ids=ids, prompt_mask=mask, prompt_positions=positions, last=(mask * tokens).amax(1), vision=vision,
        prompt_of=torch.tensor(of, dtype=torch.long), answer_ids=answers, answer_mask=answer_mask, answer_start=after,
    )  # fmt: skip
    return inputs, screens


def check_placeholders(rows: Sequence[Row], images: ImageProcessor, special: SpecialIds) -> None:
    """Raise ValueError unless each row has exactly the image tokens that its screenshots need."""
    for i, row in enumerate(rows):
        needed = sum(images.grid(s.width, s.height).tokens for s in row.screenshots)
        found = row.prompt_ids.count(special.image)
        if found != needed:
            raise ValueError(f"row {i} has {found} image tokens, but its {len(row.screenshots)} pictures need {needed}")
