"""Where a batch's tokens go: prompts, the rounds about them and whole prompts behind each other, nothing padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from cuarl.policy.qwen_vl.images import Grid
from cuarl.policy.qwen_vl.positions import multi_axis_positions
from cuarl.pretrain.dialogues import Asked, Rows
from cuarl.pretrain.shared_attention import Bounds


class Layout(NamedTuple):
    """N tokens: arrays as workers make them, tensors on the device once ``to`` has moved them."""

    ids: Any
    """(N,)."""
    positions: Any
    """(3, N): time, height, width."""
    image: Any
    """(I,): which tokens are a picture's."""
    feature: Any
    """(I,): which of the batch's features they show."""
    bounds: Bounds
    wanted: Any
    """(W,): tokens from whose states the next is learnt."""
    target: Any
    """(W,): that next token."""
    weight: Any
    """(W,): its weight in the loss."""

    def to(self, device: torch.device) -> Layout:
        """The same as tensors: integers int64, weights float32, bounds int32."""

        def moved(values: Any, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.from_numpy(values).to(device, non_blocking=True).to(dtype)

        b = self.bounds
        own, prompts, asked = (moved(a, torch.int32) for a in (b.own, b.prompts, b.asked))
        return Layout(
            ids=moved(self.ids),
            positions=moved(self.positions),
            image=moved(self.image),
            feature=moved(self.feature),
            bounds=b._replace(own=own, prompts=prompts, asked=asked),
            wanted=moved(self.wanted),
            target=moved(self.target),
            weight=moved(self.weight, torch.float32),
        )


class Head(NamedTuple):
    """What all prompts of a kind of screen begin with, up to the end of the picture."""

    ids: np.ndarray
    positions: np.ndarray
    """(3, tokens)."""
    next: int
    """Position of what follows."""
    picture: np.ndarray
    """Places of the image tokens."""
    grid: Grid


def head_of(ids: Sequence[int], grid: Grid, image_id: int) -> Head:
    """From its token ids."""
    row = np.array(ids)
    is_image = torch.from_numpy(row == image_id)[None]
    where = multi_axis_positions(is_image, torch.ones_like(is_image), [grid])
    return Head(row, where.axes[:, 0].numpy(), int(where.next), np.flatnonzero(row == image_id), grid)


def lay_out(head: Head, asked: Asked, past: Rows, image_id: int) -> Layout:
    """A batch of which every screen has the prompt ``head``, in arrays."""
    prompts, length, tokens = len(asked.tokens), len(head.ids), head.grid.tokens
    first, end = prompts * length, prompts * length + len(asked.ids)
    ids = np.concatenate([np.tile(head.ids, prompts), asked.ids, past.ids]).astype(np.int32)
    weight = np.concatenate([np.zeros(first, np.uint8), asked.weight, past.weight])
    beginnings = np.arange(prompts)[:, None] * length
    image = np.concatenate([(beginnings + head.picture).ravel(), end + np.flatnonzero(past.ids == image_id)])
    shown = np.concatenate([np.arange(prompts), past.screen])
    behind = np.tile(head.next + _places(asked.lengths), (3, 1))
    positions = [np.tile(head.positions, prompts), behind, _past(past, head, image_id)]
    learnt = np.flatnonzero(weight)
    lengths = np.concatenate([np.full(prompts, length), asked.lengths, past.lengths])
    return Layout(
        ids,
        np.concatenate(positions, axis=1).astype(np.int16),
        image.astype(np.int32),
        (shown[:, None] * tokens + np.arange(tokens)).ravel().astype(np.int32),
        Bounds(
            _bounds(lengths),
            int(lengths.max()),
            _bounds(np.full(prompts, length)),
            length,
            _bounds(asked.tokens),
            int(asked.tokens.max()),
            first,
            end,
        ),
        (learnt - 1).astype(np.int32),
        ids[learnt],
        weight[learnt],
    )


def _bounds(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _places(lengths: np.ndarray) -> np.ndarray:
    """Of every token its place in its sequence."""
    ends = np.cumsum(lengths)
    places: np.ndarray = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
    return places


def _past(past: Rows, head: Head, image_id: int) -> np.ndarray:
    """(3, tokens) positions of whole prompts."""
    if not len(past.lengths):
        return np.zeros((3, 0), np.int64)
    there = torch.from_numpy(np.arange(past.lengths.max()) < past.lengths[:, None])
    is_image = torch.zeros(there.shape, dtype=torch.bool)
    is_image[there] = torch.from_numpy(past.ids == image_id)
    where = multi_axis_positions(is_image, there, [head.grid] * len(past.lengths))
    axes: np.ndarray = where.axes[:, there].numpy()
    return axes
