"""Batches made ahead by worker processes, laid out to the last index, so that the training process only moves them."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuarl.pretrain.calls import Kind
from cuarl.pretrain.dialogues import Dialogues, Letters
from cuarl.pretrain.layout import Head, Layout, lay_out
from cuarl.pretrain.plan import Clock, Plan

Maker = Callable[[int, int, Kind, float], Dialogues]
"""(seed, screens, kind, share of soft rounds) -> a batch; runs in worker processes, so it must pickle."""
_ROOM = 4 << 30
"""Bytes that must be free in memory for pictures to go through it."""


class Batch(NamedTuple):
    """What is learnt from at once."""

    kind: Kind
    screens: np.ndarray
    """(B, height, width, 3) uint8."""
    layouts: tuple[Layout, ...]
    """Of each set of rounds, in arrays."""
    letters: Letters


@dataclass(frozen=True)
class BatchMaker:
    """Makes batches from seeds; picklable."""

    make: Maker
    heads: Mapping[Kind, Head]
    image_id: int

    def __call__(self, seed: int, count: int, kind: Kind, soft: float) -> Batch:
        """See ``Maker``."""
        data = self.make(seed, count, kind, soft)
        sets = zip(data.rounds, data.past, strict=True)
        layouts = tuple(lay_out(self.heads[kind], asked, past, self.image_id) for asked, past in sets)
        return Batch(kind, data.screens, layouts, data.letters)


def batches(plan: Plan, make: BatchMaker, clock: Clock) -> Generator[Batch]:
    """Batches without end; the same for the same seed and step."""
    # pictures go through files in memory: a pipe would keep this process busy with copying
    memory = Path("/dev/shm")
    room = memory if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM else None
    with (
        tempfile.TemporaryDirectory(prefix="cuarl-", dir=room) as folder,
        ProcessPoolExecutor(plan.workers, _context(make), _begin, (make, folder)) as pool,
    ):
        ahead: list[Any] = []
        number = clock.step
        try:
            while True:
                while len(ahead) < 2 * plan.workers:
                    kind: Kind = "desktop" if number % plan.desktop_every == plan.desktop_every - 1 else "phone"
                    screens = plan.batch if kind == "phone" else max(1, plan.batch // 2)
                    seed = plan.seed * 1_000_003 + number
                    ahead.append(pool.submit(_kept, seed, screens, kind, plan.softness(clock.done)))
                    number += 1
                yield _fetched(*ahead.pop(0).result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _context(make: BatchMaker) -> BaseContext:
    """Workers are forked from a process that has imported what they need.

    Two dozen that import it at once wait for one another, most of all on a machine that has not read it before.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, type(make.make).__module__])
    return context


class Earlier:
    """The last batches, to be learnt from again in random order: of phones 28 MB each with 128 screens."""

    def __init__(self, seed: int, most: int = 200) -> None:
        self._rng, self._most = random.Random(seed), most
        self._kept: list[Batch] = []

    def keep(self, batch: Batch) -> None:
        """Keep one, in the place of any when there are ``most``."""
        # a copy: pictures lie in a file in memory that is small on some machines
        batch = batch._replace(screens=np.array(batch.screens))
        if len(self._kept) < self._most:
            self._kept.append(batch)
        else:
            self._kept[self._rng.randrange(self._most)] = batch

    def drawn(self, count: int) -> list[Batch]:
        """``count`` of them, fewer if there are not as many."""
        return self._rng.sample(self._kept, min(count, len(self._kept)))


_own: dict[str, Any] = {}
"""Of a worker: what it makes batches with, and the folder for pictures."""


def _begin(make: BatchMaker, folder: str) -> None:
    _own.update(make=make, folder=Path(folder))


def _kept(seed: int, *asked: Any) -> tuple[Batch, Path]:
    """In a worker: a batch, its pictures in a file."""
    batch: Batch = _own["make"](seed, *asked)
    path: Path = _own["folder"] / f"{seed}.npy"
    np.save(path, batch.screens)
    return batch._replace(screens=batch.screens[:0]), path


def _fetched(batch: Batch, path: Path) -> Batch:
    # not read only, or torch warns that it might write
    screens = np.load(path, mmap_mode="r+")
    path.unlink()
    return batch._replace(screens=screens)
