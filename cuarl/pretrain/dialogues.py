"""Screens and rounds to token arrays, in worker processes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from cuarl.policy.tiny import MERGE, PATCH
from cuarl.pretrain import skills
from cuarl.pretrain.navigation import ahead, names, way
from cuarl.pretrain.screens import CROSSROADS, KINDS, add_telltales, facts_of, picture, random_world, visible
from cuarl.sim.phone.world import PROFILES, World

ROUNDS = 14
"""Rounds about one screenshot: dense supervision is what makes looking worth learning."""


class Dialogues(NamedTuple):
    """A batch as workers make it."""

    screens: np.ndarray
    """(B, height, width, 3) uint8."""
    ids: np.ndarray
    """(R, B, T) int32: R sets of rounds about the same screens, padded on the right."""
    trained: np.ndarray
    """(R, B, T) bool: True where the token is part of a call."""


@dataclass(frozen=True)
class DialogueMaker:
    """Makes batches from seeds; picklable, so that worker processes can have it."""

    tokenizer: str
    """Folder of the tokenizer."""
    system_prompt: str
    softness: skills.Softness = field(default_factory=skills.Softness)
    forbidden: frozenset[str] = frozenset()
    """Requests that must not occur: the goals of all suites, case-folded."""
    profile: str = "small"

    def __call__(self, seed: int, count: int, telltale: float, soft: bool, sets: int) -> Dialogues:
        """``count`` screens with ``sets`` sets of rounds each; the same for the same arguments on every machine."""
        tokens = _tokens(
            self.tokenizer, self.system_prompt, PROFILES[self.profile].width_px, PROFILES[self.profile].height_px
        )
        screens, rows = [], []
        for k in range(count):
            rng = random.Random(f"dialogue/{seed}/{k}")
            world = random_world(rng, PROFILES[self.profile], CROSSROADS if soft else KINDS)
            screen = screen_of(world)
            image = picture(world)
            if rng.random() < telltale:
                image = add_telltales(image, screen.facts)
            screens.append(np.asarray(image))
            rows.append([tokens.sequence(self.rounds(rng, screen, soft)) for _ in range(sets)])
        return Dialogues(np.stack(screens), *_padded(rows, sets, tokens.pad))

    def rounds(self, rng: random.Random, screen: skills.Screen, soft: bool) -> list[skills.Round]:
        """The rounds of one sequence, without forbidden requests."""
        made = skills.soft_rounds(rng, screen, ROUNDS, self.softness) if soft else skills.rounds(rng, screen, ROUNDS)
        return [r for r in made if r.request.casefold().rstrip(".") not in self.forbidden]


def screen_of(world: World) -> skills.Screen:
    """What can be asked about a moment."""
    facts = facts_of(visible(world))
    size = world.profile.width_px, world.profile.height_px
    return skills.Screen(*size, facts, lambda name: way(world, name, facts), names(), ahead(world.ui.page))


class Tokens:
    """Builds sequences of ids: the prompt with its picture once, then round after round."""

    def __init__(self, tokenizer: Tokenizer, system_prompt: str, width: int, height: int) -> None:
        self._encode = lru_cache(maxsize=1 << 16)(lambda text: tuple(tokenizer.encode(text).ids))
        cells = (width // (PATCH * MERGE)) * (height // (PATCH * MERGE))
        self._head = self._encode(
            f"<|im_start|>system\n{system_prompt}<|im_end|>\n<|im_start|>user\n"
            f"<|vision_start|>{'<|image_pad|>' * cells}<|vision_end|>"
        )
        self._user = self._encode("\n<|im_start|>user\n")
        self._assistant = self._encode("<|im_end|>\n<|im_start|>assistant\n")
        self._end = self._encode("<|im_end|>")
        self.end = self._end[0]
        self.pad = self._encode("<|endoftext|>")[0]

    def prompt(self, request: str) -> list[int]:
        """Ids of a first request, up to where the answer begins."""
        return [*self._head, *self._encode(request), *self._assistant]

    def sequence(self, rounds: list[skills.Round]) -> tuple[list[int], list[bool]]:
        """Ids, and which of them are part of a call."""
        ids, trained = list(self._head), [False] * len(self._head)
        for i, r in enumerate(rounds):
            given = (*(self._user if i else ()), *self._encode(r.request), *self._assistant)
            call = (*self._encode(r.call), *self._end)
            ids += [*given, *call]
            trained += [False] * len(given) + [True] * len(call)
        return ids, trained


@lru_cache(maxsize=2)
def _tokens(folder: str, system_prompt: str, width: int, height: int) -> Tokens:
    return Tokens(Tokenizer.from_file(str(Path(folder) / "tokenizer.json")), system_prompt, width, height)


def _padded(rows: list[list[tuple[list[int], list[bool]]]], sets: int, pad: int) -> tuple[np.ndarray, np.ndarray]:
    longest = max(len(ids) for row in rows for ids, _ in row)
    ids = np.full((sets, len(rows), longest), pad, dtype=np.int32)
    trained = np.zeros((sets, len(rows), longest), dtype=bool)
    for b, row in enumerate(rows):
        for s, (sequence, mask) in enumerate(row):
            ids[s, b, : len(sequence)] = sequence
            trained[s, b, : len(mask)] = mask
    return ids, trained
