"""Lanes: threads of which each computes by itself, for work in pieces of their own.

torch splits every operation over its threads. The operations of a small model are over before the threads have met;
here whole pieces of work go to the threads, and each operation runs in one. What a piece comes to then depends on
neither the number of cores nor on what runs beside it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

T = TypeVar("T")


class _Here(threading.local):
    """What the running thread is."""

    lane = False


_here = _Here()


class Lanes:
    """``count`` threads, in each of which torch has one."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._met = threading.Barrier(count)
        self._pool = ThreadPoolExecutor(count, "cuarl-lane")
        for ready in [self._pool.submit(self._alone) for _ in range(count)]:
            ready.result()
        # said in a thread it holds for that one, and for those that are yet to be started
        torch.set_num_threads(count)

    def run(self, pieces: Sequence[Callable[[], T]]) -> list[T]:
        """What each of ``pieces`` returns, in their order, with gradients as they are here.

        All of them are over when this returns. Raises what the first that failed has raised. In a lane they run there.
        """
        if _here.lane:
            return [call() for call in pieces]
        grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

        def piece(call: Callable[[], T]) -> T:
            with torch.inference_mode(inference), torch.set_grad_enabled(grad):
                return call()

        running: list[Future[T]] = [self._pool.submit(piece, call) for call in pieces]
        for future in running:
            future.exception()
        return [future.result() for future in running]

    def _alone(self) -> None:
        _here.lane = True
        torch.set_num_threads(1)
        self._met.wait()


def lanes() -> Lanes | None:
    """As many as torch has threads here; None if that is one."""
    count = torch.get_num_threads()
    return _made(count, os.getpid()) if count > 1 else None


@lru_cache
def _made(count: int, process: int) -> Lanes:
    """One set for each process, for threads don't survive a fork."""
    return Lanes(count)


def run_alone(pieces: Sequence[Callable[[], T]]) -> list[T]:
    """What each of ``pieces`` returns, computed by one thread each: in lanes where there are any."""
    found = lanes()
    return [call() for call in pieces] if found is None else found.run(pieces)
