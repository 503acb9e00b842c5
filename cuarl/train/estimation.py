"""What each sampled token is credited with: from rewards, and from what was precomputed in the rows, to advantages.

Where a KL divergence from the base counts against the reward (``kl_in: reward``), it enters where each algorithm's
paper puts it. With k_t the estimate at token t, from the logprobs of the sampler and of the base:

* group baselines: ``A_t − coef (k_t − mean of k over the batch)``, so that the penalty moves no average;
* leave-one-out (RLOO, arXiv:2402.14740): ``r_i − coef · sum of k over the episode`` before the comparison;
* the batch's mean (REINFORCE++, arXiv:2501.03262): ``r_i − coef · sum of k from t to the end of the episode``;
* a critic (arXiv:2203.02155): ``−coef k_t`` is a reward of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from pydantic import NonNegativeFloat

from cuarl.train.advantage import Normalise, batch_advantages, group_advantages
from cuarl.train.credit import ScreenCredit, episode_credit, screen_credit
from cuarl.train.gigpo import AnchorCredit, gigpo_credit
from cuarl.train.loss import Estimator, kl_estimate
from cuarl.train.rows import Place, TokenRow
from cuarl.train.value import CriticConfig, gae
from cuarl.trajectory import Group
from cuarl.types import Record

Baseline = Literal["group", "leave-one-out", "batch", "critic"]


class CreditConfig(Record):
    """What rewards are compared with, and what a turn has of them."""

    advantage: Normalise = "std"
    """``std``: centred and divided by the deviation. ``none``: centred only."""
    baseline: Baseline = "group"
    """The group's mean (GRPO), that of the others (RLOO), the batch's (REINFORCE++), or a critic (PPO)."""
    credit: Literal["episode", "screen", "anchor"] = "episode"
    """With the group's mean: every turn carries its episode's advantage (GRPO); by turn (see ``credit``); GiGPO."""
    screen: ScreenCredit = ScreenCredit()
    anchor: AnchorCredit = AnchorCredit()
    critic: CriticConfig = CriticConfig()
    kl_coef: NonNegativeFloat = 0.0
    """Weight of the divergence that counts against the reward."""
    kl_estimator: Estimator = "k1"

    @property
    def looks_ahead(self) -> bool:
        """Whether advantages need a forward pass first."""
        return self.kl_coef > 0 or self.baseline == "critic"


def estimate_advantages(groups: Sequence[Group], rows: Sequence[TokenRow], config: CreditConfig) -> list[TokenRow]:
    """``rows`` of ``groups`` with their advantages, and with values and returns if there is a critic.

    Where ``config.looks_ahead``, ``reference`` and ``values`` must be precomputed in the rows.
    """
    if config.baseline == "critic":
        return _critic(groups, rows, config)
    if config.baseline == "batch":
        return _over_batch(groups, rows, config)
    if config.baseline == "leave-one-out":
        return _leave_one_out(groups, rows, config)
    # episodes are numbered through the batch as rows number them, those without a reward included
    advantages: dict[Place, float] = {}
    episode = 0
    for group in groups:
        for turns in _within_group(group, config):
            advantages |= {(episode, i): a for i, a in enumerate(turns or ())}
            episode += 1
    out = [replace(r, advantages=(advantages[r.place],) * len(r.token_ids)) for r in rows]
    return _centred_penalty(out, config) if config.kl_coef else out


def _within_group(group: Group, config: CreditConfig) -> list[list[float] | None]:
    if config.credit == "screen":
        return screen_credit(group, config.screen, config.advantage)
    if config.credit == "anchor":
        return gigpo_credit(group, config.anchor, config.advantage)
    return episode_credit(group, config.advantage)


def _centred_penalty(rows: Sequence[TokenRow], config: CreditConfig) -> list[TokenRow]:
    # less its mean: else every token would be punished for the policy's having moved at all
    kls = [_divergence(r, config) for r in rows]
    tokens = sum(map(len, kls))
    mean = math.fsum(k for row in kls for k in row) / tokens if tokens else 0.0
    return [
        replace(r, advantages=tuple(a - config.kl_coef * (k - mean) for a, k in zip(r.advantages, ks, strict=True)))
        for r, ks in zip(rows, kls, strict=True)
    ]


def _leave_one_out(groups: Sequence[Group], rows: Sequence[TokenRow], config: CreditConfig) -> list[TokenRow]:
    # part of the reward, so the comparison within the group already knows it
    cost: dict[int, float] = defaultdict(float)
    for r in rows if config.kl_coef else ():
        cost[r.episode] += config.kl_coef * math.fsum(_divergence(r, config))
    advantages: dict[int, float] = {}
    episode = 0
    for group in groups:
        count = len(group.trajectories)
        rewards = [None if r is None else r - cost[episode + i] for i, r in enumerate(group.rewards)]
        compared = group_advantages(rewards, leave_one_out=True).advantages
        advantages |= {episode + i: a for i, a in enumerate(compared) if a is not None}
        episode += count
    return [replace(r, advantages=(advantages[r.episode],) * len(r.token_ids)) for r in rows]


def _over_batch(groups: Sequence[Group], rows: Sequence[TokenRow], config: CreditConfig) -> list[TokenRow]:
    rewards = _rewards(groups)
    to_go: list[list[float]] = [[] for _ in rows]
    for positions in _episodes(rows):
        # backwards over the episode: a token answers for the divergence behind it, not for what came before
        ahead = rewards[rows[positions[0]].episode]
        for i in reversed(positions):
            kls = _divergence(rows[i], config) if config.kl_coef else [0.0] * len(rows[i].token_ids)
            for k in reversed(kls):
                ahead -= config.kl_coef * k
                to_go[i].append(ahead)
            to_go[i].reverse()
    compared = batch_advantages(to_go, normalise=config.advantage)
    return [replace(r, advantages=tuple(a)) for r, a in zip(rows, compared, strict=True)]


def _critic(groups: Sequence[Group], rows: Sequence[TokenRow], config: CreditConfig) -> list[TokenRow]:
    rewards = _rewards(groups)
    out = list(rows)
    for positions in _episodes(rows):
        for i, changed in _estimated([rows[i] for i in positions], positions, rewards, config):
            out[i] = changed
    if config.advantage == "none":
        return out
    compared = batch_advantages([r.advantages for r in out])
    return [replace(r, advantages=tuple(a)) for r, a in zip(out, compared, strict=True)]


def _estimated(
    rows: Sequence[TokenRow], positions: Sequence[int], rewards: Mapping[int, float], config: CreditConfig
) -> list[tuple[int, TokenRow]]:
    """The turns of one episode with the critic's advantages, values and returns."""
    critic, by_turn = config.critic, config.critic.level == "turn"
    values, costs, discounts = [], [], []
    for row in rows:
        at = row.values
        kls = _divergence(row, config) if config.kl_coef else [0.0] * len(at)
        # a turn is worth what is expected before its first token
        values += [at[0]] if by_turn else list(at)
        costs += [math.fsum(kls)] if by_turn else kls
        # between turns only: a long answer makes a success worth no less
        discounts += [1.0] * (0 if by_turn else len(at) - 1) + [critic.discount]
    due = [-config.kl_coef * k for k in costs]
    # the verdict falls due behind the last step
    due[-1] += rewards[rows[0].episode]
    advantages, returns = gae(due, values, discounts, critic.trace_lambda)
    out, start = [], 0
    for i, row in zip(positions, rows, strict=True):
        count = 1 if by_turn else len(row.token_ids)
        part = slice(start, start + count)
        mine = advantages[part] * len(row.token_ids) if by_turn else advantages[part]
        changed = replace(row, advantages=tuple(mine), values=tuple(values[part]), returns=tuple(returns[part]))
        out.append((i, changed))
        start += count
    return out


def _rewards(groups: Sequence[Group]) -> dict[int, float]:
    """Reward by position of the episode in the batch, where there is one."""
    flat = (r for group in groups for r in group.rewards)
    return {i: r for i, r in enumerate(flat) if r is not None}


def _episodes(rows: Sequence[TokenRow]) -> list[list[int]]:
    """Positions of the rows of each episode, in the order of its turns."""
    found: dict[int, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        found[row.episode].append(i)
    return list(found.values())


def _divergence(row: TokenRow, config: CreditConfig) -> list[float]:
    """The estimate at each token, from what was recorded at sampling and what the base says."""
    base, sampler = row.reference, row.logprobs or ()
    # its expectation is over the sampler, so the ratio is base to sampler; float64, for k3 takes small differences
    log_ratio = torch.tensor(base, dtype=torch.float64) - torch.tensor(sampler, dtype=torch.float64)
    return [float(k) for k in kl_estimate(config.kl_estimator, log_ratio).tolist()]
