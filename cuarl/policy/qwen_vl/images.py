"""Screenshots to patches, exactly as the model's own image processor makes them, but in bulk.

Qwen's processors resize to whole tokens, rescale, normalise and cut into patches. Every step after the resize maps one
8-bit value to one float, so a table of 256 values per channel, computed by the processor itself, gives the same bits
at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from cuarl.policy.resize import whole_tokens
from cuarl.types import Screenshot


@dataclass(frozen=True, slots=True)
class Grid:
    """A picture's patches: rows, columns, and patches of a token's side."""

    rows: int
    cols: int
    merge: int

    @property
    def patches(self) -> int:
        """Number of patches."""
        return self.rows * self.cols

    @property
    def token_rows(self) -> int:
        """Rows of image tokens."""
        return self.rows // self.merge

    @property
    def token_cols(self) -> int:
        """Columns of image tokens."""
        return self.cols // self.merge

    @property
    def tokens(self) -> int:
        """Number of image tokens."""
        return self.token_rows * self.token_cols


class ImageProcessor:
    """Wraps a Qwen image processor of transformers (the Pillow back end, so torchvision is not needed).

    ``processor`` is the wrapped one, for whoever saves a model with its companions.
    """

    def __init__(self, processor: Any, *, min_pixels: int | None = None, max_pixels: int | None = None) -> None:
        self.processor = processor
        self.patch: int = processor.patch_size
        self.merge: int = processor.merge_size
        self.frames: int = processor.temporal_patch_size
        self.min_pixels: int = min_pixels or processor.size["shortest_edge"]
        self.max_pixels: int = max_pixels or processor.size["longest_edge"]
        self._resample = processor.resample
        self._table = _value_table(processor)
        self._same_for_all_channels = bool((self._table == self._table[0]).all())

    def resized(self, width: int, height: int) -> tuple[int, int]:
        """Width and height in pixels that the model sees of a ``width`` x ``height`` screen.

        Both become multiples of a token's side, the aspect is kept as far as possible, and the area lies within
        ``min_pixels`` and ``max_pixels``.
        """
        return whole_tokens(
            width, height, side=self.patch * self.merge, min_pixels=self.min_pixels, max_pixels=self.max_pixels
        )

    def shown(self, screenshot: Screenshot) -> Screenshot:
        """``screenshot`` as the model sees it: itself where it has that size already."""
        size = self.resized(screenshot.width, screenshot.height)
        image = screenshot.image
        return (
            screenshot if size == image.size else Screenshot(image.resize(size, Image.Resampling(int(self._resample))))
        )

    def grid(self, width: int, height: int) -> Grid:
        """The patches of a ``width`` x ``height`` screen."""
        w, h = self.resized(width, height)
        return Grid(h // self.patch, w // self.patch, self.merge)

    def patches(self, screenshots: Sequence[Screenshot]) -> torch.Tensor:
        """Pixel values (sum of patches, channels * patch * patch) float32, pictures in the given order.

        The processor repeats a still picture for every frame of a patch; here it is given once.
        """
        grids = [self.grid(s.width, s.height) for s in screenshots]
        # memory of torch's, which is aligned: how a math library rounds may depend on the alignment
        made = torch.empty((sum(g.patches for g in grids), 3, self.patch**2), dtype=torch.float32)
        pixels: np.ndarray = made.numpy()
        start = 0
        for screenshot, grid in zip(screenshots, grids, strict=True):
            self._fill(pixels[start : start + grid.patches], screenshot, grid)
            start += grid.patches
        return made.flatten(1)

    def patches_on(self, device: torch.device, screenshots: Sequence[Screenshot]) -> torch.Tensor:
        """The same values, made on ``device`` from the bytes of the pictures: a fifth of what would go there else."""
        table = torch.from_numpy(self._table).to(device)
        made: list[torch.Tensor] = []
        for screenshot in screenshots:
            grid = self.grid(screenshot.width, screenshot.height)
            values = self._in_token_order(
                torch.from_numpy(self._pixels(screenshot, grid)).to(device, non_blocking=True), grid
            )
            channels = [table[c][values[:, c].long()] for c in range(3)]
            made.append(torch.stack(channels, dim=1).flatten(1))
        return torch.cat(made)

    def _pixels(self, screenshot: Screenshot, grid: Grid) -> np.ndarray:
        """(height, width, 3) bytes at the size that the model sees."""
        image, size = screenshot.image, (grid.cols * self.patch, grid.rows * self.patch)
        if size != image.size:
            image = image.resize(size, Image.Resampling(int(self._resample)))
        return np.array(image)

    def _in_token_order(self, pixels: torch.Tensor, grid: Grid) -> torch.Tensor:
        """(patches, 3, patch * patch) of (height, width, 3)."""
        p, m = self.patch, self.merge
        values = pixels.view(grid.token_rows, m, p, grid.token_cols, m, p, 3)
        return values.permute(0, 3, 1, 4, 6, 2, 5).reshape(grid.patches, 3, p * p)

    def _fill(self, pixels: np.ndarray, screenshot: Screenshot, grid: Grid) -> None:
        """Write the patches of one picture into ``pixels`` (patches, 3, patch * patch)."""
        p, m = self.patch, self.merge
        values = np.asarray(self.shown(screenshot).image).reshape(grid.token_rows, m, p, grid.token_cols, m, p, 3)
        # patches in token order (token row, token column, row and column in the token), then channel, y, x
        values = np.ascontiguousarray(values.transpose(0, 3, 1, 4, 6, 2, 5)).reshape(pixels.shape)
        # bytes can't be out of a table's bounds, and "clip" saves the check
        if self._same_for_all_channels:
            np.take(self._table[0], values, out=pixels, mode="clip")
        else:
            for c, table in enumerate(self._table):
                pixels[:, c] = np.take(table, values[:, c], mode="clip")


def _value_table(processor: Any) -> np.ndarray:
    """(3, 256) float32: what the processor's rescaling and normalisation make of each 8-bit value."""
    ramp = np.broadcast_to(np.arange(256, dtype=np.uint8), (3, 1, 256)).copy()
    values: np.ndarray = ramp
    if processor.do_rescale:
        values = processor.rescale(values, processor.rescale_factor)
    if processor.do_normalize:
        values = processor.normalize(values, processor.image_mean, processor.image_std)
    return np.ascontiguousarray(values[:, 0, :], dtype=np.float32)
