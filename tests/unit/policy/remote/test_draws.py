"""Draws against told probabilities: servers that sample as they tell pass, those that don't are found, as often as is
said."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any

import pytest

from cuarl.policy.remote.draws import ASKED, LISTED, Position, is_doubtful, judge, read

Way = Callable[[list[float]], list[float]]
SIZE = 150
"""Tokens that there are."""


def as_told(chances: list[float]) -> list[float]:
    return chances


def cut(kept: int) -> Way:
    return lambda chances: [p if i < kept else 0.0 for i, p in enumerate(chances)]


def at(temperature: float) -> Way:
    return lambda chances: [p ** (1 / temperature) for p in chances]


@cache
def distribution(number: int, spread: float = 2.0) -> list[float]:
    """One of many, likeliest first, as of a model that is unsure."""
    rng = random.Random(number)
    weights = sorted((math.exp(rng.gauss(0, spread)) for _ in range(SIZE)), reverse=True)
    return [w / math.fsum(weights) for w in weights]


def coarse(chances: list[float]) -> list[float]:
    """As of a model that computes in bfloat16: logits of eight bits, so that many tokens are tied."""
    return [math.exp(round(8 * math.log(p)) / 8) for p in chances]


@cache
def cumulative(number: int, spread: float, way: Way) -> list[float]:
    return list(accumulate(way(distribution(number, spread))))


def reply(rng: random.Random, way: Way, tokens: int, *, told: Way = as_told, spread: float = 2.0) -> dict[str, Any]:
    """A completion whose tokens are drawn in a way, with its likeliest as vLLM lists them: what was drawn comes
    first."""
    content = []
    for _ in range(tokens):
        number = rng.randrange(30)
        (drawn,) = rng.choices(range(SIZE), cum_weights=cumulative(number, spread, way))
        shown = told(distribution(number, spread))
        whole = math.fsum(shown)
        logprobs = [math.log(p / whole) if p else -9999.0 for p in shown]
        order = [drawn, *(i for i in range(ASKED) if i != drawn)][:ASKED]
        listed = [{"token": str(i), "logprob": logprobs[i]} for i in order]
        content.append({"token": str(drawn), "logprob": logprobs[drawn], "top_logprobs": listed})
    return {"choices": [{"logprobs": {"content": content}}]}


def positions(seed: int, way: Way, count: int = 300, *, spread: float = 2.0) -> list[Position]:
    return read(reply(random.Random(seed), way, count, spread=spread))


@pytest.mark.parametrize("seed", range(30))
def test_server_that_samples_as_it_tells_passes(seed: int) -> None:
    found = judge(positions(seed, as_told))
    assert found.problem == ""
    assert found.positions > 200


@pytest.mark.parametrize("way", [as_told, coarse])
def test_ranks_are_as_the_theory_has_them(way: Way) -> None:
    """Over many servers that sample rightly, z has the mean 0 and the variance 1: where tokens are tied, too."""
    zs = [judge(read(reply(random.Random(seed), way, 60, told=way))).z for seed in range(200)]
    mean = math.fsum(zs) / len(zs)
    assert abs(mean) < 4 / math.sqrt(200)
    assert abs(math.fsum((z - mean) ** 2 for z in zs) / 200 - 1) < 4 * math.sqrt(2 / 200)


@pytest.mark.parametrize(
    "way", [cut(1), cut(5), cut(LISTED), at(0.6), at(1.6)], ids=["top1", "top5", "top18", "cold", "hot"]
)
def test_server_that_samples_otherwise_is_found(way: Way) -> None:
    for seed in range(5):
        found = positions(seed, way, 400)
        assert is_doubtful(found)
        assert "tokens are drawn" in judge(found).problem


COLD = at(0.7)


def test_power_is_how_often_it_is_found_at_least() -> None:
    """Of a hundred servers that sample colder, no fewer fail than the draws of honest ones promise."""
    promises = [judge(positions(seed, as_told, 120), first=False).power["temperature 0.7"] for seed in range(20)]
    promised = math.fsum(promises) / 20
    found = sum(bool(judge(positions(seed, COLD, 120)).problem) for seed in range(1, 101)) / 100
    assert 0.1 < promised < 0.9
    assert promised - 0.15 < found < promised + 0.4


def test_power_is_stated_with_the_second_look_that_a_doubtful_first_one_brings() -> None:
    found = judge(positions(1, as_told, 60))
    assert set(found.power) == {"top_k 1", f"top_k {LISTED}", "temperature 0.7"}
    assert found.power["top_k 1"] == pytest.approx(1.0)
    assert 0.0 < found.power["temperature 0.7"] <= 1.0
    assert "60" in found.words or "positions" in found.words


def test_positions_of_a_sure_policy_do_not_count_and_that_is_said() -> None:
    found = judge(positions(2, as_told, 50, spread=9.0))
    assert found.positions < 50
    sure = judge([one for one in positions(2, as_told, 50, spread=9.0) if one.likeliest >= 0.5])
    assert (sure.positions, sure.problem) == (0, "")
    assert "was not tested" in sure.words


def test_tokens_that_are_ruled_out_are_a_problem_by_themselves() -> None:
    """Processed log-probabilities of a server that cuts off tell so: tokens of no probability at all."""
    found = judge(read(reply(random.Random(3), cut(8), 5, told=cut(8))))
    assert "rules tokens out" in found.problem


@pytest.mark.parametrize("body", [{}, {"choices": [{}]}, {"choices": [{"logprobs": {"content": [{"logprob": -1.0}]}}]}])
def test_reply_without_lists_tells_nothing(body: Any) -> None:
    assert read(body) == []


def test_drawn_token_that_takes_the_last_place_of_a_list_is_beyond_it() -> None:
    beyond = [1 - math.fsum(distribution(number)[:LISTED]) for number in range(30)]
    assert LISTED == ASKED - 2
    for found in positions(4, lambda _: [0.0] * 100 + [1.0] * 50, 5):
        assert min(abs(found.rank - (1 - one / 2)) for one in beyond) < 1e-9
