"""Bringing together what several processes have collected."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, zip_longest

from accelerate import PartialState
from accelerate.utils import gather_object

from cuarl.train.batch import Batch
from cuarl.trajectory import Group
from cuarl.types import Screenshot


def gather_batch(share: Batch) -> Batch:
    """The batch of which process p of P has collected the groups p, p + P, …; the same on every process, in order.

    Every process must call it, also one that has collected nothing.
    """
    if PartialState().num_processes == 1:
        return share
    encoded = {digest: screenshot.png() for digest, screenshot in share.pictures.items()}
    parts: list[tuple[tuple[Group, ...], Mapping[str, bytes]]] = gather_object([(share.groups, encoded)])
    dealt = chain.from_iterable(zip_longest(*(groups for groups, _ in parts)))
    pictures = dict(share.pictures)
    for _, others in parts:
        pictures |= {d: Screenshot.decode(png) for d, png in others.items() if d not in pictures}
    return Batch(tuple(group for group in dealt if group is not None), pictures)
