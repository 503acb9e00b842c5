"""Rows of tokens and screenshots to padded tensors.

A batch keeps prompts and answers apart, and each distinct prompt once: the attempts of a group start on the same screen
with the same goal, so their prompt is encoded a single time in sampling as in training. In training, an answer that
lies inside a later turn's prompt needs no prompt of its own (``packing``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self

import torch

from cuarl.policy.packed import Packed, lay_out
from cuarl.policy.packing import SampledTurn, hosts
from cuarl.types import Screenshot

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Row:
    """One prompt with its screenshots, in prompt order, and the answer that was sampled (empty before sampling)."""

    prompt_ids: tuple[int, ...]
    screenshots: tuple[Screenshot, ...] = ()
    answer_ids: tuple[int, ...] = ()


class Size(NamedTuple):
    """Tokens of a batch."""

    real: int
    padded: int
    """Those that only fill up included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """A padded batch of B rows over P distinct prompts of up to L tokens, with answers of up to T tokens.

    ``prompt_of`` (B,) says which prompt a row continues, and ``last`` (P,) is the index of each prompt's last token.
    Masks are bool, True at real tokens.
    """

    prompt_ids: torch.Tensor
    prompt_mask: torch.Tensor
    last: torch.Tensor
    prompt_of: torch.Tensor
    answer_ids: torch.Tensor
    answer_mask: torch.Tensor
    packed: Packed | None = None
    """Where the answers are, if some of them lie inside the prompt that ``prompt_of`` names for their row."""

    def to(self, device: torch.device) -> Self:
        """The same batch on ``device``."""
        return replace(self, **{f.name: _to(getattr(self, f.name), device) for f in fields(self)})

    @property
    def padded(self) -> bool:
        """Whether any prompt is shorter than the longest."""
        return bool((~self.prompt_mask).any())

    @property
    def size(self) -> Size:
        """What is computed of the batch where each prompt is encoded once."""
        answers = self.behind.answer_mask
        real = int(self.prompt_mask.sum()) + int(answers.sum())
        return Size(real, self.prompt_mask.numel() + answers.numel())

    @property
    def behind(self) -> Self:
        """The batch with only those rows whose answers stand behind their prompts."""
        if self.packed is None:
            return self
        rows = self.packed.behind
        mask = self.answer_mask[rows]
        mask = mask[:, : int(mask.sum(1).max())]
        answers = self.answer_ids[rows, : mask.shape[1]]
        return replace(self, prompt_of=self.prompt_of[rows], answer_ids=answers, answer_mask=mask, packed=None)


def _to(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {name: _to(v, device) for name, v in value.items()}
    # a tuple with names for its values, as those of a batch are
    return type(value)(*(_to(v, device) for v in value)) if hasattr(value, "_fields") else value


class Prompts(NamedTuple):
    """The prompts of some rows, which of them each row has, and where in it the row's answer lies.

    ``starts`` has the number of prompt tokens before an answer that lies inside its prompt, and None for one behind it.
    """

    rows: list[Row]
    of: list[int]
    starts: list[int | None]


def arrange(rows: Sequence[Row], *, share: bool, pack: bool) -> Prompts:
    """The prompts to encode for ``rows``.

    With ``share``, prompts that agree in every token and every pixel are one. With ``pack``, rows whose answer lies
    inside another row's prompt have that one.
    """
    host_of = (
        hosts([SampledTurn(r.prompt_ids, _digests(r), r.answer_ids) for r in rows]) if pack else [None] * len(rows)
    )
    # without ``share`` a row's position stands for its prompt, and no two are alike
    found: dict[object, int] = {}
    kept: list[Row] = []
    own: dict[int, int] = {}
    for i, row in enumerate(rows):
        if host_of[i] is None:
            own[i] = found.setdefault((row.prompt_ids, _digests(row)) if share else i, len(kept))
            if own[i] == len(kept):
                kept.append(row)
    of = [own[i if host is None else host] for i, host in enumerate(host_of)]
    inside = [None if host is None else len(row.prompt_ids) for row, host in zip(rows, host_of, strict=True)]
    return Prompts(kept, of, inside)


def _digests(row: Row) -> tuple[str, ...]:
    return tuple(s.digest for s in row.screenshots)


def packed_answers(rows: Sequence[Row], prompts: Prompts, prompt_mask: torch.Tensor) -> Packed | None:
    """Where the answers of ``rows`` are among (P, L) prompts; None if all stand behind theirs."""
    if all(start is None for start in prompts.starts):
        return None
    return lay_out([len(row.answer_ids) for row in rows], prompts.starts, prompts.of, prompt_mask)


def pad(sequences: Sequence[Sequence[int]], fill: int, side: Side) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, longest) int64 ids and the bool mask of real tokens."""
    longest = max((len(s) for s in sequences), default=0)
    ids = torch.full((len(sequences), longest), fill, dtype=torch.long)
    mask = torch.zeros((len(sequences), longest), dtype=torch.bool)
    for i, s in enumerate(sequences):
        at = slice(longest - len(s), longest) if side == "left" else slice(0, len(s))
        ids[i, at] = torch.tensor(s, dtype=torch.long)
        mask[i, at] = True
    return ids, mask


def check_placeholders(rows: Sequence[Row], image: int, picture_tokens: Callable[[int, int], int]) -> None:
    """Raise ValueError unless each row has as many tokens ``image`` as its screenshots need, by width and height."""
    for i, row in enumerate(rows):
        needed = sum(picture_tokens(s.width, s.height) for s in row.screenshots)
        found = row.prompt_ids.count(image)
        if found != needed:
            raise ValueError(f"row {i} has {found} image tokens, but its {len(row.screenshots)} pictures need {needed}")
