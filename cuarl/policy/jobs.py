"""One answer in the making, the same for every policy; ``answering`` has how it gets on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cuarl.policy.distribution import Chance
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import SamplingParams


class SamplingHalted(Exception):
    """Nobody wants the answers any more: whoever halts sampling has cancelled those who wait for them."""


@dataclass(slots=True)
class Job:
    """One answer in the making. ``seed`` alone decides its draws."""

    prompt: Prompt
    params: SamplingParams
    seed: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stop: Literal["eos", "length", "stop_string"] | None = None
    chance: Chance = field(init=False)

    def __post_init__(self) -> None:
        self.chance = Chance(self.seed)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is always taken."""
        return self.params.temperature == 0

    def next_chance(self) -> float:
        """The number that decides the next token; negative for greedy."""
        return -1.0 if self.greedy else self.chance.at(len(self.tokens))
