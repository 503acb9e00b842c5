"""Pre-training of the shipped base: letters first, then everything that can be asked about a screen.

Two parts. In the first only the vision tower is trained, to name the letter in every place (``LetterHead``): dense
labels that the renderer gives away. In the second the whole model answers rounds about screens; letters go on beside
them. Towards the end an ever larger share of the rounds is in no known wording and answered in varied ways, so that
reinforcement learning finds something to choose from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from torch import nn

from cuarl.pretrain.calls import Kind
from cuarl.pretrain.dialogues import Dialogues, Letters, Packed, Rows
from cuarl.pretrain.letters import LetterHead, marked
from cuarl.pretrain.trainee import Trainee

Progress = Callable[[dict[str, float]], None]
Maker = Callable[[int, int, Kind, float], Dialogues]
"""(seed, screens, kind, share of soft rounds) -> a batch; runs in worker processes, so it must pickle."""


STEPS = 3000
"""Batches of a run whose length is not given otherwise."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how fast. The run lasts ``minutes`` if these are given, else ``steps`` batches."""

    steps: int = STEPS
    minutes: float | None = None
    batch: int = 128
    """Screens of a batch; of a desktop, which is larger, half as many."""
    learning_rate: float = 1e-3
    warmup: int = 100
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    letters_until: float = 0.15
    """Share of the run in which letters alone are learnt, at the most."""
    letters_enough: float = 0.95
    """Share of right letters at which that part ends earlier."""
    letters_weight: float = 0.3
    """Of the letters' loss beside that of the rounds."""
    repeats: int = 6
    """Updates on each batch while letters alone are learnt, each with the screens moved by other pixels."""
    soft_from: float = 0.7
    """Share of the run after which rounds in no known wording come in."""
    soft: float = 0.6
    """Their share from 0.1 later on."""
    desktop_every: int = 5
    """Of so many batches one shows desktops."""
    workers: int = 8
    seed: int = 0

    def softness(self, done: float) -> float:
        """Share of soft rounds when a share ``done`` of the run is over."""
        return self.soft * min(1.0, max(0.0, (done - self.soft_from) / 0.1))

    def rate(self, step: int, done: float) -> float:
        """Learning rate: linear warm-up, then level, then down to a fiftieth over the last half of the run."""
        risen = min(1.0, (step + 1) / self.warmup)
        return self.learning_rate * risen * min(1.0, 0.02 + 0.98 * 2 * (1 - done))


class Clock:
    """How far a run is, over all its attempts: by steps, or by the time that they took."""

    def __init__(self, plan: Plan, step: int = 0, seconds: float = 0.0) -> None:
        self._plan, self.step, self._before = plan, step, seconds
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Spent so far."""
        return self._before + time.monotonic() - self._began

    @property
    def done(self) -> float:
        """Share of the run, 0 to 1."""
        if self._plan.minutes is not None:
            return min(1.0, self.seconds / (60 * self._plan.minutes))
        return min(1.0, self.step / self._plan.steps)


def batches(plan: Plan, make: Maker, clock: Clock) -> Generator[Dialogues]:
    """Batches without end, made ahead by worker processes; the same for the same seed and step."""
    with ProcessPoolExecutor(plan.workers, mp_context=get_context("spawn")) as pool:
        ahead: list[Any] = []
        number = clock.step
        try:
            while True:
                while len(ahead) < max(2, plan.workers):
                    kind: Kind = "desktop" if number % plan.desktop_every == plan.desktop_every - 1 else "phone"
                    ahead.append(_submit(pool, plan, make, number, kind, plan.softness(clock.done)))
                    number += 1
                yield joined([part.result() for part in ahead.pop(0)])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_PARTS = 4


def _submit(pool: ProcessPoolExecutor, plan: Plan, make: Maker, number: int, kind: Kind, soft: float) -> list[Any]:
    screens = plan.batch if kind == "phone" else max(_PARTS, plan.batch // 2)
    seed = (plan.seed * 1_000_003 + number) * _PARTS
    return [pool.submit(make, seed + k, max(1, screens // _PARTS), kind, soft) for k in range(_PARTS)]


def joined(parts: list[Dialogues]) -> Dialogues:
    """Parts of a batch as one."""
    starts = np.cumsum([0, *(len(p.screens) for p in parts)])[:-1]
    letters = [p.letters._replace(screen=p.letters.screen + s) for p, s in zip(parts, starts, strict=True)]
    sets = range(len(parts[0].rounds))
    return Dialogues(
        parts[0].kind,
        np.concatenate([p.screens for p in parts]),
        tuple(_packed([p.rounds[k] for p in parts]) for k in sets),
        tuple(_rows([p.past[k] for p in parts], starts) for k in sets),
        Letters(*(np.concatenate(columns) for columns in zip(*letters, strict=True))),
    )


def _wide(a: np.ndarray, length: int, fill: int = 0) -> np.ndarray:
    return np.pad(a, ((0, 0), (0, length - a.shape[1])), constant_values=fill)


def _packed(parts: list[Packed]) -> Packed:
    longest = -(-max(p.ids.shape[1] for p in parts) // 8) * 8
    columns = zip(*parts, strict=True)
    return Packed(*(np.concatenate([_wide(a, longest, 255 * (i == 2)) for a in c]) for i, c in enumerate(columns)))


def _rows(parts: list[Rows], starts: np.ndarray) -> Rows:
    longest = max(p.ids.shape[1] for p in parts)
    return Rows(
        np.concatenate([_wide(p.ids, longest) for p in parts]),
        np.concatenate([_wide(p.weight, longest) for p in parts]),
        np.concatenate([p.screen + s for p, s in zip(parts, starts, strict=True)]),
    )


class Pretraining:
    """A model, its head for letters and its optimiser, step by step; everything that a checkpoint has to hold."""

    def __init__(self, model: Any, plan: Plan, heads: dict[Kind, tuple[int, ...]], device: str) -> None:
        """``heads`` are the ids of prompts up to their pictures' ends."""
        self.plan, self._heads, self._device = plan, heads, torch.device(device)
        if self._device.type == "cuda":
            # it plans anew for every length of keys
            torch.backends.cuda.enable_cudnn_sdp(False)
        self.trainee = Trainee(model.to(device)).train()
        self.head = LetterHead(model.config.text_config.hidden_size).to(device)
        self._parameters = [*self.trainee.parameters(), *self.head.parameters()]
        self.optimiser = torch.optim.AdamW(
            self._parameters,
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
            "model": self.trainee.model.state_dict(),
            "head": self.head.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "lettering": self.lettering,
            "since": self._since,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.trainee.model.load_state_dict(state["model"])
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.lettering, self._since = state["lettering"], state["since"]

    def learn(self, data: Dialogues, done: float) -> dict[str, float]:
        """All updates on one batch; returns the figures of the last one as tensors on the device."""
        screens = torch.from_numpy(data.screens).to(self._device, non_blocking=True)
        found: dict[str, Any] = {}
        if self.lettering:
            for _ in range(self.plan.repeats):
                found = self._update(partial(self._letters, screens, data), done)
            if done > self.plan.letters_until or float(found["letters"]) > self.plan.letters_enough:
                self.lettering, self._since = False, 0
            return found
        for asked, past in zip(data.rounds, data.past, strict=True):
            found = self._update(partial(self._everything, screens, data, asked, past), done)
        return found

    def _update(self, forward: Callable[[], dict[str, Any]], done: float) -> dict[str, Any]:
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate(self._since, done)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type != "cpu"):
            found = forward()
        found["loss"].backward()
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self._since += 1
        return {k: v.detach() for k, v in found.items()}

    def _letters(self, screens: torch.Tensor, data: Dialogues) -> dict[str, Any]:
        down, right = (int(n) for n in self._shifts.integers(0, 16, 2))
        seen = self.trainee.see(torch.roll(self._recoloured(screens), (down, right), (1, 2)))
        at = marked(data.letters, (down, right), (screens.shape[1], screens.shape[2]), self._device)
        loss, share = self.head(seen.features, at)
        return {"loss": loss, "letters": share}

    def _recoloured(self, screens: torch.Tensor) -> torch.Tensor:
        """Screens with their channels in another order or their light inverted, half the time: more looks."""
        if self._shifts.random() < 0.5:
            return screens
        swapped = screens[..., torch.from_numpy(self._shifts.permutation(3)).to(self._device)]
        return 255 - swapped if self._shifts.random() < 0.5 else swapped

    def _everything(self, screens: torch.Tensor, data: Dialogues, asked: Packed, past: Rows) -> dict[str, Any]:
        trainee = self.trainee
        seen = trainee.see(screens)
        at = marked(data.letters, (0, 0), (screens.shape[1], screens.shape[2]), self._device)
        letters, share = self.head(seen.features, at)
        prompts = trainee.prompts(seen, self._heads[data.kind])
        ids, weights, row, place = self._moved(*asked)
        total, weight = trainee.loss(trainee.follow(prompts, ids.long(), row, place), ids.long(), weights)
        if len(past.ids):
            ids, weights, screen = self._moved(*past)
            more, also = trainee.loss(trainee.whole(seen, ids.long(), screen.long()), ids.long(), weights)
            total, weight = total + more, weight + also
        answers = total / weight
        return {"loss": answers + self.plan.letters_weight * letters, "answers": answers, "letters": share}

    def _moved(self, *arrays: np.ndarray) -> tuple[torch.Tensor, ...]:
        return tuple(torch.from_numpy(a).to(self._device, non_blocking=True) for a in arrays)


def pretrain(
    run: Pretraining,
    make: Maker,
    clock: Clock,
    *,
    report: Progress,
    keep: Callable[[], None],
    every: int = 100,
    keep_s: float = 75.0,
) -> None:
    """Train until the clock says that the run is over.

    ``report`` gets figures every ``every`` batches, and ``keep`` is called every ``keep_s`` seconds and at the end.
    """
    kept, waited, last = time.monotonic(), 0.0, 0
    stream = batches(run.plan, make, clock)
    losses: list[dict[str, Any]] = []
    while clock.done < 1:
        began = time.monotonic()
        data = next(stream)
        waited += time.monotonic() - began
        losses.append(run.learn(data, clock.done))
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
