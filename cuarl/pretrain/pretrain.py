"""Pre-training of the shipped base: letters first, then everything that can be asked about a screen.

Two parts. In the first only the vision tower is trained, to name the letter in every place (``LetterHead``): dense
labels that the renderer gives away. In the second the whole model answers rounds about screens; letters go on beside
them. Towards the end an ever larger share of the rounds is in no known wording and answered in varied ways, so that
reinforcement learning finds something to choose from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from cuarl.policy.master import Master
from cuarl.pretrain.batches import Batch, BatchMaker, Earlier, Maker, batches
from cuarl.pretrain.calls import Kind
from cuarl.pretrain.layout import Layout, head_of
from cuarl.pretrain.letters import LetterHead, Marked, marked
from cuarl.pretrain.moments import SIZES
from cuarl.pretrain.plan import Clock, Plan
from cuarl.pretrain.trainee import Trainee

Progress = Callable[[dict[str, float]], None]


class Pretraining:
    """A model, its head for letters and its optimiser, step by step; everything that a checkpoint has to hold."""

    def __init__(self, model: Any, plan: Plan, heads: dict[Kind, tuple[int, ...]], device: str) -> None:
        """``heads`` are the ids of prompts up to their pictures' ends."""
        self.plan, self._device = plan, torch.device(device)
        self.model = model.to(device).train()
        # a base that is being trained has float32 weights; on a GPU they are computed with as bfloat16
        used = self.model if self._device.type == "cpu" else deepcopy(self.model).to(torch.bfloat16)
        self.trainee = Trainee(used).train()
        token = self.trainee.token
        self._heads = {
            kind: head_of(ids, self.trainee.grid(*SIZES[kind][::-1]), self.trainee.image_id)
            for kind, ids in heads.items()
        }
        self.head = LetterHead(model.config.text_config.hidden_size, token).to(device)
        self._used_head = self.head if used is self.model else deepcopy(self.head).to(torch.bfloat16)
        self._kept = [*self.model.parameters(), *self.head.parameters()]
        self._master = Master([*used.parameters(), *self._used_head.parameters()], self._kept)
        self.optimiser = torch.optim.AdamW(
            self._kept,
            lr=plan.learning_rate,
            betas=plan.betas,
            weight_decay=plan.weight_decay,
            fused=self._device.type != "cpu",
        )
        self.lettering = plan.letters_until > 0
        """Whether letters alone are still being learnt."""
        self._since = 0
        self._shifts = np.random.default_rng(plan.seed)

    def state(self) -> dict[str, Any]:
        """What ``restore`` takes."""
        return {
            "model": self.model.state_dict(),
            "head": self.head.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "lettering": self.lettering,
            "since": self._since,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.lettering, self._since = state["lettering"], state["since"]
        self.take(state["model"])

    def take(self, weights: dict[str, torch.Tensor]) -> None:
        """Go on with other weights."""
        self.model.load_state_dict(weights)
        self._master.write()

    def batches(self, make: Maker) -> BatchMaker:
        """What makes batches of what ``make`` makes."""
        return BatchMaker(make, self._heads, self.trainee.image_id)

    def learn(self, data: Batch, done: float) -> dict[str, float]:
        """All updates on one batch; returns the figures of the last one as tensors on the device."""
        screens = torch.from_numpy(data.screens).to(self._device, non_blocking=True)
        found: dict[str, Any] = {}
        if self.lettering:
            for _ in range(self.plan.repeats):
                found = self._update(partial(self._letters, screens, data), done)
            if done > self.plan.letters_until or float(found["letters"]) > self.plan.letters_enough:
                self.lettering, self._since = False, 0
            return found
        for layout in data.layouts:
            found = self._update(partial(self._everything, screens, data, layout), done)
        return found

    def _update(self, forward: Callable[[], dict[str, Any]], done: float) -> dict[str, Any]:
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate(self._since, done)
        found = forward()
        found["loss"].backward()
        self._master.take_gradients()
        nn.utils.clip_grad_norm_(self._kept, 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self._master.write()
        self._since += 1
        return {k: v.detach() for k, v in found.items()}

    def _letters(self, screens: torch.Tensor, data: Batch) -> dict[str, Any]:
        down, right = (int(n) for n in self._shifts.integers(0, 16, 2))
        seen = self.trainee.see(torch.roll(self._recoloured(screens), (down, right), (1, 2)))
        loss, share = self._used_head(seen.features, self._marked(screens, data, (down, right)))
        return {"loss": loss, "letters": share}

    def _marked(self, screens: torch.Tensor, data: Batch, shift: tuple[int, int]) -> Marked:
        size = screens.shape[1], screens.shape[2]
        return marked(data.letters, shift, size, self.trainee.token, self._device)

    def _recoloured(self, screens: torch.Tensor) -> torch.Tensor:
        """Screens with their channels in another order or their light inverted, half the time: more looks."""
        if self._shifts.random() < 0.5:
            return screens
        swapped = screens[..., torch.from_numpy(self._shifts.permutation(3)).to(self._device)]
        return 255 - swapped if self._shifts.random() < 0.5 else swapped

    def _everything(self, screens: torch.Tensor, data: Batch, layout: Layout) -> dict[str, Any]:
        trainee = self.trainee
        seen = trainee.see(screens)
        letters, share = self._used_head(seen.features, self._marked(screens, data, (0, 0)))
        answers = trainee.loss(seen, layout.to(self._device))
        return {"loss": answers + self.plan.letters_weight * letters, "answers": answers, "letters": share}


def pretrain(
    run: Pretraining,
    make: Maker,
    clock: Clock,
    *,
    report: Progress,
    keep: Callable[[], None],
    every: int = 100,
    keep_s: float = 120.0,
) -> None:
    """Train until the clock says that the run is over.

    ``report`` gets figures every ``every`` batches, and ``keep`` is called every ``keep_s`` seconds and at the end.
    """
    kept, waited, last = time.monotonic(), 0.0, 0
    stream = batches(run.plan, run.batches(make), clock)
    losses: list[dict[str, Any]] = []
    earlier = Earlier(run.plan.seed)
    while clock.done < 1:
        began = time.monotonic()
        data = next(stream)
        waited += time.monotonic() - began
        losses.append(run.learn(data, clock.done))
        for again in earlier.drawn(run.plan.replays):
            run.learn(again, clock.done)
        if run.plan.replays:
            earlier.keep(data)
        clock.step += 1
        if clock.step % every == 0 or clock.done >= 1:
            figures = _means(losses)
            report(
                {
                    "step": clock.step,
                    "seconds": clock.seconds,
                    **figures,
                    "waited_s": waited,
                    "batches": clock.step - last,
                }
            )
            losses.clear()
            waited, last = 0.0, clock.step
            if not math.isfinite(figures["loss"]):
                raise FloatingPointError(f"the loss is {figures['loss']} at step {clock.step}")
        if time.monotonic() - kept > keep_s:
            keep()
            kept = time.monotonic()
    stream.close()
    keep()


def _means(figures: list[dict[str, Any]]) -> dict[str, float]:
    keys = figures[-1].keys()
    return {k: float(torch.stack([f[k] for f in figures if k in f]).mean()) for k in keys}
