"""What both sides have to do in one cell of the contest, as plain data."""

from __future__ import annotations

import random
import re
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.peers.phone import APPS

SHAPES = {"tiny": "the shipped base", "2b": "Qwen3-VL-2B", "4b": "Qwen3-VL-4B", "8b": "Qwen3-VL-8B"}
LETTERS = 22
"""Most letters before a call where the answers' lengths are mixed."""
_CELL = re.compile(r"(\d+):(\d+)x(\d+)((?::(?:mixed|\d+ms))*)")


@dataclass(frozen=True, kw_only=True)
class Work:
    """One cell: ``batch`` episodes of ``turns`` calls a step, in groups of ``group`` that share a task."""

    turns: int
    width: int
    height: int
    mixed: bool = False
    """Answers differ in length, by attempt and by turn; else each has ``think`` letters before its call."""
    delay_ms: int = 0
    """What each click takes, besides drawing."""
    shape: str = "tiny"
    device: str = "cpu"
    batch: int = 16
    group: int = 8
    micro: int = 8
    """Sequences of a forward pass of training."""
    think: int = 0
    checkpointing: bool = False
    activation_gib: float = 0.0
    """Activations that cuarl keeps with checkpointing; TRL has no such setting."""
    warmup: int = 1
    steps: int = 3
    """Steps that are measured, after those to warm up."""
    threads: int = 2
    seed: int = 1

    def __post_init__(self) -> None:
        if self.batch % self.group or self.batch % self.micro:
            raise ValueError(
                f"a batch of {self.batch} is no multiple of groups of {self.group} and passes of {self.micro}"
            )

    @property
    def cell(self) -> str:
        """As it is written on the command line."""
        marks = [":mixed"] * self.mixed + [f":{self.delay_ms}ms"] * bool(self.delay_ms)
        return f"{self.turns}:{self.width}x{self.height}{''.join(marks)}"

    @property
    def task(self) -> dict[str, Any]:
        """Everything that is the same on both sides."""
        return {k: v for k, v in asdict(self).items() if k != "activation_gib"}

    def letters(self, attempt: int, turn: int) -> int:
        """Letters that answer number ``turn`` of an attempt has before its call."""
        if not self.mixed:
            return self.think
        return LETTERS * ((attempt + 3 * turn) % self.group) // max(1, self.group - 1)

    def tasks(self) -> list[list[tuple[int, str]]]:
        """For each step, the seed of the phone and the app to open, one a group."""
        chance = random.Random(self.seed)
        groups = range(self.batch // self.group)
        return [[(chance.randrange(1 << 30), chance.choice(APPS)) for _ in groups] for _ in range(self.all_steps)]

    @property
    def all_steps(self) -> int:
        """Those to warm up included."""
        return self.warmup + self.steps


def parse_cell(text: str) -> dict[str, Any]:
    """Fields of ``Work`` from ``TURNS:WIDTHxHEIGHT[:mixed][:200ms]``. Raises ValueError for anything else."""
    found = _CELL.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no cell such as 3:192x320, 3:192x320:mixed or 3:192x320:200ms")
    turns, width, height = (int(found[i]) for i in (1, 2, 3))
    marks = found[4].split(":")[1:]
    fields: dict[str, Any] = {"turns": turns, "width": width, "height": height, "mixed": "mixed" in marks}
    delays = [int(m.removesuffix("ms")) for m in marks if m != "mixed"]
    return fields | ({"delay_ms": delays[-1]} if delays else {})
