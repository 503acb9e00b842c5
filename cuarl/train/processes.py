"""This process among those of a run: joining them, and bringing together what each has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import chain, zip_longest
from typing import TypeVar

import torch
from accelerate import Accelerator, InitProcessGroupKwargs, PartialState
from accelerate.utils import broadcast_object_list, gather_object

from cuarl.errors import ConfigError
from cuarl.train.batch import Batch
from cuarl.train.shutdown import StepUndone
from cuarl.types import ImageRef, Screenshot

T = TypeVar("T")
_Part = tuple[Batch, Mapping[str, tuple[bytes, ImageRef]]]
"""What a process has collected, and its pictures, encoded."""

_SHARDED = "CUARL_FSDP_VERSION"
"""Where this process notes what the launcher asked for."""

_LONGEST_WAIT = timedelta(hours=6)
"""How long a process waits for the others, for instance while the main one evaluates."""


def join_processes(device: str = "auto") -> Accelerator:
    """Join the processes that a launcher has started, or be the only one; ``device`` is ``auto`` or a torch device."""
    # with shards accelerate would want to hold the model itself, which sampling does not allow (see ``sharding``)
    if os.environ.pop("ACCELERATE_USE_FSDP", "false").lower() == "true":
        os.environ[_SHARDED] = os.environ.get("FSDP_VERSION", "1")
    # unless told, accelerate lets processes without an accelerator each believe to be alone
    cpu = device == "cpu" or not torch.accelerator.is_available()
    return Accelerator(cpu=cpu, kwargs_handlers=[InitProcessGroupKwargs(timeout=_LONGEST_WAIT)], mixed_precision="no")


def sharded() -> bool:
    """Whether the launcher was asked for shards (preset fsdp2); ask after joining. Raises ConfigError for FSDP 1."""
    version = os.environ.get(_SHARDED)
    if version == "1":
        raise ConfigError(
            "layers are kept in shards by FSDP 2 alone", where="fsdp_version: 1", hint="--accelerate fsdp2"
        )
    return version is not None and PartialState().num_processes > 1


def on_another_node() -> bool:
    """Whether the main process is on another machine than this one."""
    return os.environ.get("GROUP_RANK", "0") != "0"


def from_main(value: T | None) -> T:
    """What the main process passes, on every process; the others pass None."""
    shared = [value]
    broadcast_object_list(shared)
    assert shared[0] is not None, "the main process must pass a value"
    return shared[0]


def any_of(mine: bool) -> bool:
    """Whether it holds on any process; every process must call it."""
    return any(gather_object([mine])) if PartialState().num_processes > 1 else mine


@contextmanager
def waited_for() -> Iterator[None]:
    """Around what a process collects for ``gather_batch``: the others, waiting there, are told if it is cut short."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done and PartialState().num_processes > 1:
            gather_object([None])


def gather_batch(share: Batch) -> Batch:
    """The batch of which process p of P has collected the groups p, p + P, …; the same on every process, in order.

    Every process must call it, also one that has collected nothing. Raises StepUndone if one was cut short.
    """
    if PartialState().num_processes == 1:
        return share
    encoded = {digest: (screenshot.png(), screenshot.ref) for digest, screenshot in share.pictures.items()}
    found: list[_Part | None] = gather_object([(replace(share, pictures={}), encoded)])
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        raise StepUndone
    dealt = chain.from_iterable(zip_longest(*(of.groups for of, _ in parts)))
    pictures = dict(share.pictures)
    for _, others in parts:
        # most are of episodes that another process trains on: they are never decoded here
        pictures |= {d: Screenshot.encoded(*picture) for d, picture in others.items() if d not in pictures}
    return Batch(
        tuple(group for group in dealt if group is not None),
        pictures,
        discarded=tuple(group for of, _ in parts for group in of.discarded),
        importance={episode: weight for of, _ in parts for episode, weight in of.importance.items()},
        earlier=tuple(group for of, _ in parts for group in of.earlier),
        rehearsal=tuple(group for of, _ in parts for group in of.rehearsal),
    )
