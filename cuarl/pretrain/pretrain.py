"""Pre-training of the shipped base: next-token loss on short dialogues about drawn screens.

One sequence holds a screenshot and many rounds (a request, the call that answers it); only the calls are trained. Three
things decide whether such a small model learns to look at all (measured; see the model card): many rounds a screenshot,
vision positions that start large, and telltale colours that are faded out, sample by sample, over the first half. A
second run softens the policy: requests of unknown wording are answered in varied ways, so that reinforcement learning
finds something to choose from; it dwells on the screens from which ways part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from torch import nn

from cuarl.policy.qwen_vl.decoder import Decoder
from cuarl.policy.qwen_vl.images import Grid
from cuarl.policy.qwen_vl.positions import multi_axis_positions
from cuarl.policy.qwen_vl.vision import adapt_tower
from cuarl.policy.tiny import MERGE, PATCH
from cuarl.pretrain.dialogues import Dialogues

Progress = Callable[[dict[str, float]], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how fast. One step is one batch of ``batch`` sequences."""

    steps: int = 5000
    batch: int = 256
    learning_rate: float = 5e-4
    warmup: int = 200
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    telltale_until: float = 0.15
    """Share of the run in which every screen has telltale colours."""
    faded_by: float = 0.4
    """Share of the run after which none has; in between their share falls linearly. 0: none ever has."""
    soft: bool = False
    """Whether the soft mixture is trained."""
    reuse: int = 4
    """Batches drawn from each screen, with other rounds."""
    workers: int = 8
    seed: int = 0

    def telltale(self, step: int) -> float:
        """Probability that a screen of this step has telltale colours."""
        done = step / self.steps
        if self.faded_by == 0:
            return 0.0
        if done <= self.telltale_until:
            return 1.0
        return max(0.0, 1 - (done - self.telltale_until) / (self.faded_by - self.telltale_until))

    def rate(self, step: int) -> float:
        """Learning rate: linear warm-up, then a cosine down to a twentieth."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.learning_rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def patches_of(screens: torch.Tensor) -> torch.Tensor:
    """Equal-sized screens (B, height, width, 3) uint8 to patches (B * patches, 768) float32 in token order.

    The same values as ``images.ImageProcessor.patches`` gives, computed on the device.
    """
    b, h, w, _ = screens.shape
    side = PATCH * MERGE
    x = screens.float() / 127.5 - 1
    x = x.view(b, h // side, MERGE, PATCH, w // side, MERGE, PATCH, 3)
    return x.permute(0, 1, 4, 2, 5, 7, 3, 6).reshape(-1, 3 * PATCH * PATCH)


class Tower:
    """The vision tower over equal-sized screens: positions are worked out once, not for each picture in Python."""

    def __init__(self, visual: Any, grid: Grid) -> None:
        self._visual, self._grid = visual, grid
        self._rotary: tuple[torch.Tensor, ...] = ()
        hook = visual.blocks[0].register_forward_pre_hook(self._note, with_kwargs=True)
        weight = next(visual.parameters())
        thw = torch.tensor([[1, grid.rows, grid.cols]], device=weight.device)
        with torch.no_grad():
            visual(torch.zeros(grid.patches, visual.patch_embed.proj.weight[0].numel()).to(weight), grid_thw=thw)
        hook.remove()

    def _note(self, _: nn.Module, __: Any, kwargs: dict[str, Any]) -> None:
        self._rotary = kwargs["position_embeddings"]

    def __call__(self, patches: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Patches (B * patches, values) to features (N, D) and those of deeper levels (levels, N, D)."""
        visual, count = self._visual, self._grid.patches
        pictures = patches.shape[0] // count
        hidden = visual.patch_embed(patches)
        hidden = (hidden.view(pictures, count, -1) + self._positions().to(hidden.dtype)).flatten(0, 1)
        bounds = torch.arange(0, pictures * count + 1, count)
        rotary = tuple(t.repeat(pictures, 1) for t in self._rotary)
        deep = []
        for i, block in enumerate(visual.blocks):
            hidden = block(hidden, cu_seqlens=bounds, position_embeddings=rotary)
            if i in visual.deepstack_visual_indexes:
                deep.append(visual.deepstack_merger_list[visual.deepstack_visual_indexes.index(i)](hidden))
        return visual.merger(hidden), torch.stack(deep)

    def _positions(self) -> torch.Tensor:
        """(patches, D) in token order, resampled from the square grid of learnt positions."""
        g, table = self._grid, self._visual.pos_embed.weight
        side = math.isqrt(table.shape[0])
        square = table.view(side, side, -1).permute(2, 0, 1)[None].float()
        fitted = nn.functional.interpolate(square, (g.rows, g.cols), mode="bilinear", align_corners=True)[0]
        m = g.merge
        return fitted.view(-1, g.rows // m, m, g.cols // m, m).permute(1, 3, 2, 4, 0).reshape(g.patches, -1)


class Trainee(nn.Module):
    """The model with a forward over equal-sized screens at one place in the prompt; returns the mean loss."""

    def __init__(self, model: Any, height: int, width: int) -> None:
        super().__init__()
        self.model = model
        self.image_id: int = model.config.image_token_id
        adapt_tower(model.model.visual)
        self._grid = Grid(height // PATCH, width // PATCH, MERGE)
        self._tower = Tower(model.model.visual, self._grid)
        self._decoder = Decoder(model.model.language_model, model.lm_head)

    def hidden(self, screens: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """(B, T, D) states for screens (B, height, width, 3) uint8 and ids (B, T) int64."""
        seen, deep = self._tower(patches_of(screens))
        first = int((ids[0] == self.image_id).nonzero()[0])
        count = self._grid.tokens
        embedded = self._decoder.embed(ids)
        embedded = torch.cat(
            [embedded[:, :first], seen.view(len(ids), count, -1).to(embedded.dtype), embedded[:, first + count :]], 1
        )
        rows = torch.arange(len(ids), device=ids.device)[:, None] * ids.shape[1]
        index = (rows + torch.arange(first, first + count, device=ids.device)).flatten()
        return self._decoder.run(embedded, self._where(ids, first), None, image_index=index, deep=deep)

    def _where(self, ids: torch.Tensor, first: int) -> torch.Tensor:
        """Positions (3, B, T): the same for every row, since the picture is at the same place in all."""
        is_image = torch.zeros(1, ids.shape[1], dtype=torch.bool)
        is_image[0, first : first + self._grid.tokens] = True
        one = multi_axis_positions(is_image, torch.ones_like(is_image), [self._grid])
        return one.axes.to(ids.device).expand(3, len(ids), -1)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """(…, D) to (…, vocabulary) float32."""
        return self._decoder.logits(hidden)

    def forward(self, screens: torch.Tensor, ids: torch.Tensor, trained: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy in nats over the trained tokens."""
        hidden = self.hidden(screens, ids)[:, :-1][trained[:, 1:]]
        return nn.functional.cross_entropy(self.logits(hidden), ids[:, 1:][trained[:, 1:]])


Maker = Callable[[int, int, float, bool, int], Dialogues]
"""(seed, screens, telltale share, soft, sets of rounds) -> a batch; runs in worker processes, so it must pickle."""


def batches(plan: Plan, make: Maker, start: int = 0) -> Iterator[tuple[int, Dialogues, int]]:
    """(step, dialogues, set of rounds) for every step; screens are made ahead by worker processes, in order."""
    jobs = range(start, plan.steps, plan.reuse)
    with ProcessPoolExecutor(plan.workers, mp_context=get_context("spawn")) as pool:
        ahead = []
        todo = iter(jobs)
        for step in todo:
            ahead.append((step, _submit(pool, plan, make, step)))
            if len(ahead) >= 2 * plan.workers:
                break
        while ahead:
            step, parts = ahead.pop(0)
            following = next(todo, None)
            if following is not None:
                ahead.append((following, _submit(pool, plan, make, following)))
            whole = _joined([p.result() for p in parts])
            for r in range(min(plan.reuse, plan.steps - step)):
                yield step + r, whole, r


_PARTS = 4


def _submit(pool: ProcessPoolExecutor, plan: Plan, make: Maker, step: int) -> list[Any]:
    size = plan.batch // _PARTS
    seed = (plan.seed * 1_000_003 + step) * _PARTS
    return [pool.submit(make, seed + k, size, plan.telltale(step), plan.soft, plan.reuse) for k in range(_PARTS)]


def _joined(parts: list[Dialogues]) -> Dialogues:
    length = max(p.ids.shape[2] for p in parts)

    def wide(a: np.ndarray) -> np.ndarray:
        return np.pad(a, ((0, 0), (0, 0), (0, length - a.shape[2])))

    return Dialogues(
        np.concatenate([p.screens for p in parts]),
        np.concatenate([wide(p.ids) for p in parts], axis=1),
        np.concatenate([wide(p.trained) for p in parts], axis=1),
    )


def pretrain(
    model: Any,
    plan: Plan,
    make: Maker,
    *,
    size: tuple[int, int],
    device: str,
    report: Progress,
    probe: Callable[[Trainee], dict[str, float]],
    every: int = 250,
) -> None:
    """Train ``model`` in place on screens of ``size`` (height, width).

    ``probe`` measures held-out accuracy; ``report`` gets its figures every ``every`` steps.
    """
    trainee = Trainee(model.to(device), *size).train()
    optimiser = torch.optim.AdamW(
        model.parameters(),
        lr=plan.learning_rate,
        betas=plan.betas,
        weight_decay=plan.weight_decay,
        fused=device != "cpu",
    )
    began, losses = time.monotonic(), []
    for step, data, r in batches(plan, make):
        for group in optimiser.param_groups:
            group["lr"] = plan.rate(step)
        screens = torch.from_numpy(data.screens).to(device, non_blocking=True)
        ids = torch.from_numpy(data.ids[r]).to(device, torch.long, non_blocking=True)
        trained = torch.from_numpy(data.trained[r]).to(device, non_blocking=True)
        with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=device != "cpu"):
            loss = trainee(screens, ids, trained)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        if (step + 1) % every == 0 or step + 1 == plan.steps:
            mean = torch.stack(losses).mean().item()
            losses.clear()
            report({"step": step + 1, "loss": mean, "seconds": time.monotonic() - began, **probe(trainee)})
