"""Does a server sample from the distribution whose log-probabilities it tells? A test of what it drew. Pure.

A server may apply settings of its own to a request (vLLM and SGLang take what is left out from the model's
``generation_config.json``). Log-probabilities that were taken before these settings are right, importance ratios are
not, and no comparison of recorded numbers shows it. What was drawn does: a token's *rank* is the probability of all
that are likelier, and half of its own. If tokens are drawn as told, ranks have the mean 1/2 at every position, whatever
its distribution, and a variance that the told probabilities give. (Tied tokens, of which there are many where a model
computes in bfloat16, share one rank.) What cuts off or sharpens draws likelier tokens, and
the mean rank is lower. Positions at which one token is likelier than one half tell little, and don't count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

ASKED = 20
"""Likeliest tokens that are asked for: vLLM's own limit."""
LISTED = ASKED - 2
"""Likeliest tokens that count as known: the last place of a list may be given to the token that was drawn, and the last
but one may be tied with others that are not listed."""
UNSURE = 0.5
"""A position counts where its likeliest token is less probable than this."""
FALSE_ALARM = 1e-5
"""Chance that a server which samples rightly is refused."""
DOUBTFUL = 2.0
"""Standard deviations from which on a first test is made again, with more draws."""
AGAIN = 10
"""How many times as many there are then."""
SHARPER = 0.7
"""A temperature that the test's power is stated for."""
_TIED = 1e-6
_CUT_OFF = -1000.0
"""Log-probabilities below this are of tokens that the server itself has ruled out."""


class Moments(NamedTuple):
    """Mean and variance of a rank."""

    mean: float
    variance: float


class Position(NamedTuple):
    """One token that was drawn, and what the server says of its place."""

    rank: float
    """Of the drawn token, 0 to 1. All that are not listed have one."""
    likeliest: float
    """Probability of the likeliest token."""
    told: Moments
    """Of the rank, if tokens are drawn as told; the mean is 1/2."""
    instead: Mapping[str, Moments]
    """The same for other ways of drawing."""
    cut: bool
    """Whether tokens were ruled out, although none were to be."""


class DrawTest(NamedTuple):
    """What the draws say."""

    positions: int
    """Positions that count."""
    mean: float
    """Mean rank of what was drawn there; nan without positions."""
    z: float
    """How far it is from 1/2, in standard deviations."""
    problem: str
    """Why the server does not sample from what it tells; empty if nothing speaks against it."""
    power: Mapping[str, float]
    """By what a server might do instead: the chance that this test notices."""

    @property
    def words(self) -> str:
        """The test, and how much it can tell, in one line."""
        if not self.positions:
            return "how the server samples was not tested: it tells no position at which the policy is unsure"
        found = ", ".join(f"{name} {chance:.0%}" for name, chance in self.power.items())
        return (
            f"draws tested at {self.positions} positions with a likeliest token below {UNSURE:g}: "
            f"mean rank {self.mean:.3f}, "
            f"0.5 expected (z {self.z:+.1f}); would be noticed: {found}"
        )


def read(body: Mapping[str, Any]) -> list[Position]:
    """The positions in a chat completion that was asked for with ``top_logprobs``; none where it has no such lists."""
    choices = body.get("choices") or [{}]
    content = (choices[0].get("logprobs") or {}).get("content") or ()
    found = []
    for token in content:
        listed = sorted((float(one["logprob"]) for one in token.get("top_logprobs") or ()), reverse=True)
        if len(listed) >= ASKED:
            found.append(_position(float(token["logprob"]), listed[: ASKED - 1]))
    return found


def judge(positions: Sequence[Position], *, first: bool = True) -> DrawTest:
    """Compare what was drawn with what was told. After the ``first`` test there might have been one with more draws."""
    unsure = _unsure(positions)
    bar = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)
    problem = "it rules tokens out, although nothing was to be cut off" if any(one.cut for one in positions) else ""
    if not unsure:
        return DrawTest(0, math.nan, 0.0, problem, {})
    z = _z(unsure)
    mean = math.fsum(one.rank for one in unsure) / len(unsure)
    if not problem and abs(z) > bar:
        problem = (
            f"{'too likely' if z < 0 else 'too unlikely'} tokens are drawn (mean rank {mean:.3f}, not 0.5, z {z:+.1f})"
        )
    power = {name: _noticed(unsure, name, bar, first=first) for name in unsure[0].instead}
    return DrawTest(len(unsure), mean, z, problem, power)


def is_doubtful(positions: Sequence[Position]) -> bool:
    """Whether what was drawn looks odd enough to look more closely."""
    unsure = _unsure(positions)
    return bool(unsure) and abs(_z(unsure)) > DOUBTFUL


def _unsure(positions: Sequence[Position]) -> list[Position]:
    return [one for one in positions if one.likeliest < UNSURE]


def _z(unsure: Sequence[Position]) -> float:
    deviation = math.sqrt(math.fsum(one.told.variance for one in unsure))
    return math.fsum(one.rank - 0.5 for one in unsure) / deviation


def _noticed(unsure: Sequence[Position], name: str, bar: float, *, first: bool) -> float:
    """Chance that a server which draws otherwise fails; at the ``first`` test, that it looks doubtful, then fails."""
    shift = math.fsum(one.instead[name].mean - 0.5 for one in unsure)
    variance = math.fsum(one.instead[name].variance for one in unsure)
    told = math.fsum(one.told.variance for one in unsure)

    def beyond(deviations: float, times: float) -> float:
        limit = deviations * math.sqrt(told * times)
        normal = NormalDist(shift * times, math.sqrt(variance * times) or 1e-9)
        return normal.cdf(-limit) + 1 - normal.cdf(limit)

    return beyond(DOUBTFUL, 1) * beyond(bar, AGAIN) if first else beyond(bar, 1)


def _position(drawn: float, listed: Sequence[float]) -> Position:
    groups = _tied(listed)
    if len(groups) > 1:  # of the last, more may be beyond the list
        groups.pop()
    known = [one for group in groups for one in group]
    chances = [math.exp(one) for one in known]
    beyond = max(0.0, 1.0 - math.fsum(chances))
    ranks, below = [], 0.0
    for group in groups:
        whole = math.exp(group[0]) * len(group)
        ranks += [below + whole / 2] * len(group)
        below += whole
    ranks.append(below + beyond / 2)
    place = next((i for i, one in enumerate(known) if drawn >= one - _TIED), len(known))
    sharp = [chance ** (1 / SHARPER) for chance in chances]
    # what is not listed is at most as likely as the last that is
    sharp.append(beyond * chances[-1] ** (1 / SHARPER - 1))
    instead = {
        "top_k 1": _moments([1.0], ranks),
        f"top_k {LISTED}": _moments(chances, ranks),
        f"temperature {SHARPER:g}": _moments(sharp, ranks),
    }
    told = _moments([*chances, beyond], ranks)
    return Position(ranks[place], chances[0], told, instead, listed[-1] < _CUT_OFF)


def _tied(listed: Sequence[float]) -> list[list[float]]:
    """Log-probabilities, likeliest first, in groups of those that are equal."""
    groups: list[list[float]] = []
    for one in listed:
        if groups and groups[-1][0] - one < _TIED:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _moments(weights: Sequence[float], ranks: Sequence[float]) -> Moments:
    """Of the ranks, drawn in proportion to ``weights``; ranks without one are never drawn."""
    total = math.fsum(weights)
    mean = math.fsum(w * r for w, r in zip(weights, ranks, strict=False)) / total
    return Moments(mean, math.fsum(w * (r - mean) ** 2 for w, r in zip(weights, ranks, strict=False)) / total)
