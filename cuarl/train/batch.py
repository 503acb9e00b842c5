"""From groups of trajectories to rows of tokens, and from rows to micro-batches. Pure Python, no tensors.

One row is one turn: the prompt ids as they were sampled from, then the sampled ids. Only sampled ids are trained, told
apart by their recorded positions and never by comparing ids with an end or padding token: an answer that was cut off
has no end token to learn, and one that ended has exactly the one that was sampled. Each token of an episode carries
its turn's advantage (``credit``).

Two decisions that change the gradient:

* Rows of groups without signal (all rewards equal) are dropped before any forward pass, for their policy gradient is
  exactly 0, but they stay in the denominators: dropping is an optimisation, not another loss. They are kept where a
  KL penalty or an entropy bonus gives them a gradient.
* ``mask_truncated`` leaves answers that were cut off by the length limit out, from the denominators too.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import PositiveInt

from cuarl.errors import TrainError
from cuarl.train.advantage import Normalise
from cuarl.train.credit import ScreenCredit, episode_credit, screen_credit
from cuarl.trajectory import Group, Sampled, Trajectory
from cuarl.types import Record, Screenshot

Reduction = Literal["token", "sequence", "constant"]


class BatchConfig(Record):
    """How episodes are turned into rows, and rows into updates."""

    advantage: Normalise = "std"
    """``std``: GRPO. ``none``: rewards are centred only (Dr. GRPO)."""
    credit: Literal["episode", "screen"] = "episode"
    """``episode``: every turn carries its episode's advantage (GRPO). ``screen``: by turn (see ``credit``)."""
    screen: ScreenCredit = ScreenCredit()
    """How ``credit: screen`` looks ahead."""
    reduction: Reduction = "token"
    """Mean over all tokens; over episodes, each the mean over its tokens; or sum over ``constant_tokens`` an episode."""
    constant_tokens: PositiveInt = 1024
    """Divisor of each episode with ``reduction: constant``."""
    mask_truncated: bool = False
    """Leave answers that hit the length limit out of the loss."""
    num_substeps: PositiveInt = 1
    """Optimiser steps a batch; each takes its own share of the groups."""
    max_tokens: PositiveInt = 8192
    """Upper bound on rows × longest row of one forward pass (a single longer row still passes, alone)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one training step learns from."""

    groups: tuple[Group, ...]
    pictures: Mapping[str, Screenshot]
    """Every picture in the sampled windows, by digest."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One sampled turn, ready to be scored."""

    episode: int
    """Position of the episode in the batch."""
    name: str
    """Episode id and turn, for messages."""
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    """The trained tokens, exactly as sampled."""
    images: tuple[str, ...]
    """Digests of the pictures in the window, in prompt order."""
    logprobs: tuple[float, ...] | None
    """Of ``token_ids`` under the distribution they were drawn from; None in supervised training."""
    advantage: float
    temperature: float
    weight: float = 0.0
    """Weight of each trained token in the loss of its update."""

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Update:
    """The rows of one optimiser step, weighted, and what they were weighted by."""

    rows: tuple[TokenRow, ...]
    """Those with a gradient; empty if nothing can be learnt."""
    tokens: int
    """Trained tokens, those of dropped rows included."""
    episodes: int
    """Episodes with at least one trained token, dropped ones included."""


def policy_updates(groups: Sequence[Group], config: BatchConfig, *, keep_flat: bool = False) -> list[Update]:
    """Turn the groups of a training step into S = ``num_substeps`` updates; group i belongs to update i modulo S.

    ``keep_flat`` keeps rows with advantage 0 (see the module docstring). Raises TrainError for a turn that can't be
    trained on, by name.
    """
    rows_G: list[list[TokenRow]] = []
    episode = 0
    for group in groups:
        rows: list[TokenRow] = []
        for trajectory, advantages in zip(group.trajectories, _credit(group, config), strict=True):
            if advantages is not None:
                rows += _policy_rows(trajectory, episode, advantages, mask_truncated=config.mask_truncated)
            episode += 1
        rows_G.append(rows)
    return _updates(rows_G, config, keep_flat=keep_flat)


def _credit(group: Group, config: BatchConfig) -> list[list[float] | None]:
    if config.credit == "screen":
        return screen_credit(group, config.screen, config.advantage)
    return episode_credit(group, config.advantage)


def supervised_updates(groups: Sequence[Group], config: BatchConfig) -> list[Update]:
    """Turn demonstrations into updates that make every turn of theirs likelier, whatever the reward.

    Logprobs are not needed; ids are. Raises TrainError for a turn without exact ids, by name.
    """
    episodes = [t for group in groups for t in group.trajectories]
    rows_E = [
        [_row(t, i, turn.index, _exact(t, turn.index, turn.sampled), 1.0) for turn in t.turns]
        for i, t in enumerate(episodes)
    ]
    return _updates(rows_E, config, keep_flat=True)


def _policy_rows(
    trajectory: Trajectory, episode: int, advantages: Sequence[float], *, mask_truncated: bool
) -> list[TokenRow]:
    rows = []
    for turn, advantage in zip(trajectory.turns, advantages, strict=True):
        sampled = _exact(trajectory, turn.index, turn.sampled)
        if sampled.logprobs is None:
            raise _refusal(trajectory, turn.index, "has no logprobs of the distribution it was sampled from")
        if not all(math.isfinite(p) for p in sampled.logprobs):
            raise _refusal(trajectory, turn.index, "has a logprob that is not a finite number")
        if sampled.temperature <= 0:
            raise _refusal(trajectory, turn.index, "was decoded greedily, so its logprobs are not those of its choice")
        if not (mask_truncated and sampled.stop == "length"):
            rows.append(_row(trajectory, episode, turn.index, sampled, advantage))
    return rows


def _exact(trajectory: Trajectory, turn: int, sampled: Sampled | None) -> Sampled:
    if sampled is None:
        raise _refusal(trajectory, turn, "was not sampled from a policy")
    if not sampled.exact or not sampled.prompt_ids or not sampled.token_ids:
        raise _refusal(trajectory, turn, "has no exact token ids: they were recovered from text, or never given")
    return sampled


def _refusal(trajectory: Trajectory, turn: int, why: str) -> TrainError:
    policy = trajectory.policy or trajectory.agent or "unknown"
    return TrainError(
        f"turn {turn} {why}",
        where=f"episode {trajectory.episode_id}, policy {policy}",
        hint="roll out with the policy in process (cuarl train does), at a temperature above 0",
    )


def _row(trajectory: Trajectory, episode: int, turn: int, sampled: Sampled, advantage: float) -> TokenRow:
    return TokenRow(
        episode=episode,
        name=f"{trajectory.episode_id}#{turn}",
        prompt_ids=sampled.prompt_ids,
        token_ids=sampled.token_ids,
        images=tuple(ref.digest for ref in sampled.images),
        logprobs=sampled.logprobs,
        advantage=advantage,
        temperature=sampled.temperature,
    )


def _updates(units: Sequence[Sequence[TokenRow]], config: BatchConfig, *, keep_flat: bool) -> list[Update]:
    steps = config.num_substeps
    return [_update([r for unit in units[k::steps] for r in unit], config, keep_flat=keep_flat) for k in range(steps)]


def _update(rows: list[TokenRow], config: BatchConfig, *, keep_flat: bool) -> Update:
    weights = token_weights(rows, config.reduction, constant_tokens=config.constant_tokens)
    weighted = (replace(row, weight=w) for row, w in zip(rows, weights, strict=True))
    return Update(
        rows=tuple(row for row in weighted if keep_flat or row.advantage != 0.0),
        tokens=sum(len(row.token_ids) for row in rows),
        episodes=len({row.episode for row in rows}),
    )


def token_weights(rows: Sequence[TokenRow], reduction: Reduction, *, constant_tokens: int = 1) -> list[float]:
    """Weight of each trained token of each row, so that the weighted sum of losses is the reduction.

    With N trained tokens in all, E episodes, and n_e tokens in episode e: ``token`` 1 / N (DAPO, arXiv:2503.14476),
    ``sequence`` 1 / (E n_e) (GRPO, arXiv:2402.03300, where a sequence is all answers of an episode), ``constant``
    1 / (E L) (Dr. GRPO, arXiv:2503.20783).
    """
    tokens_E: Counter[int] = Counter()
    for row in rows:
        tokens_E[row.episode] += len(row.token_ids)
    if reduction == "token":
        tokens = tokens_E.total()
        return [1.0 / tokens for _ in rows]
    if reduction == "sequence":
        return [1.0 / (len(tokens_E) * tokens_E[row.episode]) for row in rows]
    return [1.0 / (len(tokens_E) * constant_tokens) for _ in rows]


def share_of_rank(rows: Sequence[TokenRow], rank: int, world: int) -> list[TokenRow]:
    """Rows of the episodes that fall to one process: each episode, longest first, to the process with the least work.

    Whole episodes stay together, since their turns share pictures. Every process computes the same shares.
    """
    length_E: Counter[int] = Counter()
    for row in rows:
        length_E[row.episode] += len(row)
    load = [(0, r) for r in range(world)]
    owner: dict[int, int] = {}
    for episode in sorted(length_E, key=lambda e: (-length_E[e], e)):
        tokens, lightest = heapq.heappop(load)
        owner[episode] = lightest
        heapq.heappush(load, (tokens + length_E[episode], lightest))
    return [row for row in rows if owner[row.episode] == rank]


def micro_batches(rows: Sequence[TokenRow], max_tokens: int) -> list[list[TokenRow]]:
    """Cut rows into forward passes of at most ``max_tokens`` padded tokens, rows of similar length together.

    Rows with the same prompt are neighbours, for the scorer encodes a prompt that several rows of a pass share only
    once. Longest first, so that what does not fit into memory fails at once. The result depends on the rows alone.
    """
    batches: list[list[TokenRow]] = []
    longest = 0
    for row in sorted(rows, key=lambda r: (-len(r.prompt_ids), r.prompt_ids, r.images, -len(r.token_ids))):
        grown = max(longest, len(row))
        if batches and (len(batches[-1]) + 1) * grown <= max_tokens:
            batches[-1].append(row)
            longest = grown
        else:
            batches.append([row])
            longest = len(row)
    return batches
