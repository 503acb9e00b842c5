"""From groups of trajectories to weighted updates, and from these to micro-batches. Pure Python, no tensors.

Two decisions that change the gradient:

* Rows without signal (all advantages 0) are dropped before any forward pass, for their policy gradient is exactly 0,
  but they stay in the denominators: dropping is an optimisation, not another loss. They are kept where a KL penalty,
  an entropy bonus or a critic gives them a gradient.
* ``mask_truncated`` leaves answers that were cut off by the length limit out, from the denominators too.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import PositiveInt

from cuarl.policy.packing import SampledTurn, hosts
from cuarl.train.advantage import group_advantages
from cuarl.train.estimation import CreditConfig, estimate_advantages
from cuarl.train.rejection import Rejection, accepted
from cuarl.train.rows import TokenRow, policy_rows, supervised_rows
from cuarl.train.shaping import Shaping, shaped
from cuarl.trajectory import Group
from cuarl.types import Screenshot

_IN_A_LANE = 1024
"""Tokens of a pass of which several run at once: enough that what each does once is little of it."""

Reduction = Literal["token", "turn", "sequence", "constant"]


class BatchConfig(CreditConfig):
    """How episodes are turned into rows, and rows into updates."""

    shaping: Shaping = Shaping()
    reduction: Reduction = "token"
    """Mean over all tokens; over turns or episodes, each the mean over its tokens; or sum over ``constant_tokens`` an
    episode."""
    constant_tokens: PositiveInt = 1024
    """Divisor of each episode with ``reduction: constant``."""
    mask_truncated: bool = False
    """Leave answers that hit the length limit out of the loss."""
    num_substeps: PositiveInt = 1
    """Optimiser steps a batch; each takes its own share of the groups."""
    num_epochs: PositiveInt = 1
    """Passes over the batch."""
    max_tokens: PositiveInt = 8192
    """Upper bound on sequences × longest sequence of one forward pass (a single longer one still passes, alone)."""
    pack: bool = True
    """Compute turns that extend one another as one sequence (``policy.packing``)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one training step learns from."""

    groups: tuple[Group, ...]
    pictures: Mapping[str, Screenshot]
    """Every picture in the sampled windows, by digest."""
    discarded: tuple[Group, ...] = ()
    """Groups that were collected and left out of training, for they teach nothing; metrics count them."""
    importance: Mapping[str, float] = field(default_factory=dict)
    """In supervised training, how much an episode's tokens count, by its id; 1 where nothing is said."""
    earlier: tuple[Group, ...] = ()
    """Groups that are imitated, too, and were collected before; metrics of episodes leave them out."""
    led: Mapping[str, Group] = field(default_factory=dict)
    """Groups that an oracle led (``hints``), by the id of the group of failures that each was collected for; metrics of
    episodes leave them out."""
    demonstrated: Mapping[str, Group] = field(default_factory=dict)
    """An oracle's episode each, by the id of the group of failures that it was collected for; metrics of episodes leave
    them out."""
    rehearsal: tuple[Group, ...] = ()
    """What else is imitated, lest it be unlearnt: no episodes of anything, so that metrics of episodes leave it out."""

    @property
    def collected(self) -> tuple[Group, ...]:
        """All groups of the step."""
        return (*self.groups, *self.discarded)

    @property
    def learnt(self) -> tuple[Group, ...]:
        """The groups to learn from: those that were led, if that teaches, in the place of the failures they are for."""
        led = {failed: group for failed, group in self.led.items() if group_advantages(group.rewards).mixed}
        there = {group.group_id for group in self.groups}
        more = (group for failed, group in led.items() if failed not in there)
        return (*(led.get(group.group_id, group) for group in self.groups), *more)


Update = tuple[TokenRow, ...]
"""The rows of one optimiser step that have a gradient, weighted; empty if nothing can be learnt."""
Precompute = Callable[[Sequence[TokenRow]], list[TokenRow]]
"""Adds to rows what is known of them only by a forward pass; see ``objective.Objective.precompute``."""


def teaches(group: Group, shaping: Shaping) -> bool:
    """Whether the rewards that are learnt from differ within the group."""
    return group_advantages(shaped(group, shaping).rewards).mixed


def policy_updates(
    groups: Sequence[Group],
    config: BatchConfig,
    *,
    keep_flat: bool = False,
    precompute: Precompute = list,
    demonstrated: Sequence[Group] = (),
    share: float = 0.0,
) -> list[Update]:
    """Turn the groups of a training step into S = ``num_substeps`` updates; group i belongs to update i modulo S.

    ``keep_flat`` keeps rows whose advantages are all 0 (see the module docstring). ``precompute`` is called once. The
    episodes of ``demonstrated`` are imitated beside it: the mean over the tokens of each has the weight ``share``.
    Raises TrainError for a turn that can't be trained on, by name.
    """
    groups = [shaped(group, config.shaping) for group in groups]
    rows = policy_rows(groups)
    if config.looks_ahead:  # rewards or values of every turn are needed, whatever becomes of it
        rows = precompute(rows)
    rows = estimate_advantages(groups, rows, config)
    rows = [r for r in rows if not (config.mask_truncated and r.truncated)]
    rows = _weighted(rows, config, keep_flat=keep_flat or config.baseline == "critic")
    if not config.looks_ahead:  # rows without a gradient are gone, and cost no forward pass
        rows = precompute(rows)
    first = sum(len(group.trajectories) for group in groups)
    return _updates([*rows, *_imitated(demonstrated, first, share * config.num_substeps)], config)


def _imitated(demonstrated: Sequence[Group], first: int, share: float) -> list[TokenRow]:
    """Rows of demonstrations, numbered as episodes from ``first`` on; demonstration i belongs to update i modulo S."""
    rows = supervised_rows(demonstrated, {})
    tokens: Counter[int] = Counter()
    for row in rows:
        tokens[row.group] += len(row.token_ids)
    return [replace(row, episode=first + row.episode, weight=share / tokens[row.group], imitated=True) for row in rows]


def supervised_updates(
    groups: Sequence[Group],
    config: BatchConfig,
    importance: Mapping[str, float] | None = None,
    rehearsal: Sequence[Group] = (),
) -> list[Update]:
    """Turn demonstrations into updates that make every turn of theirs likelier, whatever the reward.

    With ``importance`` (see ``Batch``) the weight of a token is ``s_e w / Σ s_e w``, where w is that of the reduction.
    ``rehearsal`` is imitated, too. Raises TrainError for a turn without exact ids, by name.
    """
    rows = supervised_rows((*groups, *rehearsal), importance or {})
    rows = [replace(row, rehearsed=True) if row.group >= len(groups) else row for row in rows]
    rows = _weighted(rows, config, keep_flat=True)
    return [_rescaled(update) for update in _updates(rows, config)]


def _rescaled(update: Update) -> Update:
    """With what importances do to the weights: these sum up to what they did. Rows that count nothing are gone."""
    given = math.fsum(r.weight * len(r.token_ids) for r in update)
    wanted = math.fsum(r.weight * r.advantages[0] * len(r.token_ids) for r in update)
    if wanted == given:
        return update
    return tuple(replace(r, weight=r.weight * r.advantages[0] * given / wanted) for r in update if r.advantages[0])


def rejection_updates(groups: Sequence[Group], config: BatchConfig, rejection: Rejection) -> list[Update]:
    """Like ``supervised_updates``, of the attempts that pass ``rejection``."""
    return supervised_updates(accepted([shaped(group, config.shaping) for group in groups], rejection), config)


def _weighted(rows: Sequence[TokenRow], config: BatchConfig, *, keep_flat: bool) -> list[TokenRow]:
    """Rows with a gradient and their weights in their updates, update after update."""
    weighted: list[TokenRow] = []
    for share in _shares(rows, config):
        # before rows without a gradient go, for they count in the denominators
        weights = token_weights(share, config.reduction, constant_tokens=config.constant_tokens)
        values = sum(len(row.values) for row in share)
        weighted += (
            replace(row, weight=w, value_weight=1.0 / values if values else 0.0)
            for row, w in zip(share, weights, strict=True)
            if keep_flat or any(row.advantages)
        )
    return weighted


def _updates(rows: Sequence[TokenRow], config: BatchConfig) -> list[Update]:
    return [tuple(share) for share in _shares(rows, config)] * config.num_epochs


def _shares(rows: Sequence[TokenRow], config: BatchConfig) -> list[list[TokenRow]]:
    steps = config.num_substeps
    return [[row for row in rows if row.group % steps == k] for k in range(steps)]


def token_weights(rows: Sequence[TokenRow], reduction: Reduction, *, constant_tokens: int = 1) -> list[float]:
    """Weight of each trained token of each row, so that the weighted sum of losses is the reduction.

    With N trained tokens in all, E episodes, R turns, n_e tokens in episode e and n_r in turn r:

    * ``token``: 1 / N (DAPO, arXiv:2503.14476);
    * ``turn``: 1 / (R n_r) (GSPO, arXiv:2507.18071, whose sequence is one answer);
    * ``sequence``: 1 / (E n_e) (GRPO, arXiv:2402.03300, where a sequence is all answers of an episode);
    * ``constant``: 1 / (E L) (Dr. GRPO, arXiv:2503.20783).
    """
    tokens_E: Counter[int] = Counter()
    for row in rows:
        tokens_E[row.episode] += len(row.token_ids)
    # every sum of weights times tokens is 1 (with ``constant``: at most), whatever is dropped later
    if reduction == "token":
        tokens = tokens_E.total()
        return [1.0 / tokens for _ in rows]
    if reduction == "turn":
        return [1.0 / (len(rows) * len(row.token_ids)) for row in rows]
    if reduction == "sequence":
        return [1.0 / (len(tokens_E) * tokens_E[row.episode]) for row in rows]
    return [1.0 / (len(tokens_E) * constant_tokens) for _ in rows]


def share_of_rank(rows: Sequence[TokenRow], rank: int, world: int, *, pack: bool) -> list[TokenRow]:
    """Rows of the episodes that fall to one process: each episode, longest first, to the process with the least work.

    Whole episodes stay together, since their turns share pictures. Every process computes the same shares.
    """
    length_E: Counter[int] = Counter()
    for sequence in sequences(rows, pack=pack):
        length_E[sequence[0].episode] += len(sequence[0])
    # by number where loads are equal, so that all processes agree without a word
    load = [(0, r) for r in range(world)]
    owner: dict[int, int] = {}
    for episode in sorted({row.episode for row in rows}, key=lambda e: (-length_E[e], e)):
        tokens, lightest = heapq.heappop(load)
        owner[episode] = lightest
        heapq.heappush(load, (tokens + length_E[episode], lightest))
    return [row for row in rows if owner[row.episode] == rank]


def micro_batches(rows: Sequence[TokenRow], max_tokens: int, *, pack: bool) -> list[list[TokenRow]]:
    """Cut rows into forward passes of at most ``max_tokens`` padded tokens, sequences of similar length together.

    Sequences with the same prompt are neighbours, for the scorer encodes a prompt that several rows of a pass share
    only once. Longest first, so that what does not fit into memory fails at once. The result depends on the rows alone.
    """
    batches: list[list[TokenRow]] = []
    longest = count = 0
    for sequence in sorted(sequences(rows, pack=pack), key=lambda s: _by_prompt(s[0])):
        longest, count = max(longest, len(sequence[0])), count + 1
        # padded tokens count: a sequence is as long as the longest beside it
        if batches and count * longest <= max_tokens:
            batches[-1] += sequence
        else:
            batches.append(list(sequence))
            longest, count = len(sequence[0]), 1
    return batches


def lane_batches(rows: Sequence[TokenRow], max_tokens: int, *, pack: bool) -> list[list[TokenRow]]:
    """The same for passes without padding, of which several run at once: by what is computed.

    That is, a prompt that several rows of a pass share counts once.
    """
    most = min(max_tokens, _IN_A_LANE)
    batches: list[list[TokenRow]] = []
    prompt, room = None, 0
    for sequence in sorted(sequences(rows, pack=pack), key=lambda s: _by_prompt(s[0])):
        first = sequence[0]
        own, before = (first.prompt_ids, first.images), len(first.prompt_ids)
        room -= len(first.token_ids) + (0 if own == prompt else before)
        if batches and room >= 0:
            batches[-1] += sequence
        else:
            batches.append(list(sequence))
            room = most - before - len(first.token_ids)
        prompt = own
    return batches


def sequences(rows: Sequence[TokenRow], *, pack: bool) -> list[list[TokenRow]]:
    """Rows that are one sequence each: the one that holds all, then those it extends; without ``pack``, every row."""
    if not pack:
        return [[row] for row in rows]
    host_of = hosts([SampledTurn(row.prompt_ids, row.images, row.token_ids) for row in rows])
    found = {i: [row] for i, (row, host) in enumerate(zip(rows, host_of, strict=True)) if host is None}
    for row, host in zip(rows, host_of, strict=True):
        if host is not None:
            found[host].append(row)
    return list(found.values())


def _by_prompt(row: TokenRow) -> tuple[Any, ...]:
    return -len(row.prompt_ids), row.prompt_ids, row.images, -len(row.token_ids)
