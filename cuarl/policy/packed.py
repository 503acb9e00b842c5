"""Where the answers of a batch are when some lie inside the prompts (``packing``): as tensors, for the forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch


class Packed(NamedTuple):
    """Where the answers of a packed batch are; all int64.

    ``behind`` (S,) are the rows whose answers stand behind their prompts, S of them with up to U answer tokens.
    ``inside`` (P, W) says from which tokens of each padded prompt the answers inside it were drawn. ``source`` (N,)
    has, for each real answer token, row by row, the place of its state: among the S × U states of the former, then the
    P × W of the latter.
    """

    behind: torch.Tensor
    inside: torch.Tensor
    source: torch.Tensor

    def gather(self, behind: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        """(N, …) in the order of the rows, of values (S, U, …) and (P, W, …)."""
        return torch.cat([behind.flatten(0, 1), inside.flatten(0, 1)]).index_select(0, self.source)


def lay_out(
    answers: Sequence[int], starts: Sequence[int | None], prompt_of: Sequence[int], prompt_mask: torch.Tensor
) -> Packed:
    """Place the answers of some rows.

    ``answers`` are their lengths, ``starts`` how many tokens of its prompt come before an answer that lies inside it
    (None: it stands behind), ``prompt_of`` the prompts and ``prompt_mask`` (P, L) their real tokens, padded on either
    side.
    """
    behind = [i for i, start in enumerate(starts) if start is None]
    room = max((answers[i] for i in behind), default=0)
    # real tokens begin here where prompts are padded on the left
    offset = prompt_mask.int().argmax(1).tolist()
    places: list[list[int]] = [[] for _ in range(len(prompt_mask))]
    slots: dict[int, int] = {}
    for i, (length, start, p) in enumerate(zip(answers, starts, prompt_of, strict=True)):
        if start is not None:
            slots[i] = len(places[p])
            # a token is drawn from the state of the one before it
            places[p] += range(offset[p] + start - 1, offset[p] + start - 1 + length)
    width = max(map(len, places))
    rank = {i: n for n, i in enumerate(behind)}
    # behind prompts each row has a line of ``room`` states; inside, each prompt has one of ``width``
    source: list[int] = []
    for i, (length, p) in enumerate(zip(answers, prompt_of, strict=True)):
        first = rank[i] * room if i in rank else len(behind) * room + p * width + slots[i]
        source += range(first, first + length)
    # what fills a line up is never gathered; its first real token is certainly there
    filled = [row + [offset[p]] * (width - len(row)) for p, row in enumerate(places)]
    return Packed(torch.tensor(behind), torch.tensor(filled), torch.tensor(source))
