"""Screens and rounds to token arrays, in worker processes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from cuarl.policy.tiny import TOKEN
from cuarl.pretrain.calls import Kind
from cuarl.pretrain.moments import SIZES, Moment, moment
from cuarl.pretrain.skills import Round, rounds, with_past
from cuarl.pretrain.soft import Softness, soft_rounds
from cuarl.pretrain.texts import Line

ROUNDS = 24
"""Rounds about one screenshot: dense supervision is what makes looking worth learning."""
LONGEST = 72
"""Most tokens of a round; longer ones are left out."""
COORDINATE = 2
"""Weight of a coordinate's tokens in the loss: there are few of them among the letters of what is read."""
EARLIER = "(earlier screen)"
"""What prompts say in place of a screenshot that is not shown any more (``agent.prompt``)."""


class Letters(NamedTuple):
    """Every letter of a batch's screens: (N,) int16 each; ``screen`` indexes the batch, ``x`` and ``y`` are pixels."""

    screen: np.ndarray
    x: np.ndarray
    y: np.ndarray
    code: np.ndarray
    """Which: ASCII less 32."""


class Rows(NamedTuple):
    """Sequences padded on the right: ids (N, T) int32, weights (N, T) uint8 (0: not trained), and whose they are."""

    ids: np.ndarray
    weight: np.ndarray
    screen: np.ndarray
    """(N,) int32: index of the screen."""


class Packed(NamedTuple):
    """The rounds of each screen of a batch, one behind the other, (B, T) each, padded on the right."""

    ids: np.ndarray
    """int32."""
    weight: np.ndarray
    """uint8; 0: not trained."""
    row: np.ndarray
    """uint8: number of the round that a token is part of; a token sees no other round's."""
    place: np.ndarray
    """uint8: where in its round a token is."""


class Dialogues(NamedTuple):
    """A batch as workers make it."""

    kind: Kind
    screens: np.ndarray
    """(B, height, width, 3) uint8."""
    rounds: tuple[Packed, ...]
    """Sets of rounds about the same screens, to follow on the prompt up to the picture's end."""
    past: tuple[Rows, ...]
    """Whole prompts that show earlier answers, the picture behind them, for some of the screens."""
    letters: Letters


@dataclass(frozen=True)
class DialogueMaker:
    """Makes batches from seeds; picklable, so that worker processes can have it."""

    tokenizer: str
    """Folder of the tokenizer."""
    system_prompts: dict[Kind, str]
    softness: Softness = field(default_factory=Softness)
    forbidden: frozenset[str] = frozenset()
    """Requests that must not occur: the goals of all suites, case-folded."""
    sets: int = 2
    past_share: float = 0.25
    """Share of the screens that are also asked for with earlier answers in the prompt."""

    def __call__(self, seed: int, count: int, kind: Kind, soft: float) -> Dialogues:
        """``count`` screens; ``soft`` is the share of rounds in no known wording. Depends on the arguments alone."""
        tokens = tokens_for(self.tokenizer, self.system_prompts[kind], *SIZES[kind])
        rng = random.Random(f"dialogue/{seed}/{kind}")
        moments = [moment(rng, kind, ways=rng.random() < max(0.15, soft)) for _ in range(count)]
        asked = tuple(self._rounds(rng, tokens, moments, soft) for _ in range(self.sets))
        past = tuple(self._past(rng, tokens, moments) for _ in range(self.sets))
        return Dialogues(kind, np.stack([m.picture for m in moments]), asked, past, letters_of(moments))

    def _rounds(self, rng: random.Random, tokens: Tokens, moments: list[Moment], soft: float) -> Packed:
        made: list[list[tuple[list[int], list[int]]]] = []
        for m in moments:
            found = soft_rounds(rng, m.screen, ROUNDS, self.softness, soft) if soft else rounds(rng, m.screen, ROUNDS)
            rows = [tokens.row(r) for r in found if self.may(r)]
            made.append([row for row in rows if len(row[0]) <= LONGEST])
        return packed(made, tokens.pad)

    def _past(self, rng: random.Random, tokens: Tokens, moments: list[Moment]) -> Rows:
        made: list[tuple[list[int], list[int], int]] = []
        for i in range(round(len(moments) * self.past_share)):
            found = with_past(rng, moments[i].screen)
            if found is not None and self.may(found):
                made.append((*tokens.whole(found), i))
        return padded(made, tokens.pad)

    def may(self, r: Round) -> bool:
        """Whether a round may be trained."""
        return r.request.casefold().rstrip(".") not in self.forbidden


class Tokens:
    """Builds sequences of ids: the prompt with its picture, and what follows on it."""

    def __init__(self, tokenizer: Tokenizer, system_prompt: str, width: int, height: int) -> None:
        self._encode = lru_cache(maxsize=1 << 16)(lambda text: tuple(tokenizer.encode(text).ids))
        cells = (width // TOKEN) * (height // TOKEN)
        self._system = self._encode(f"<|im_start|>system\n{system_prompt}<|im_end|>\n<|im_start|>user\n")
        self._picture = self._encode(f"<|vision_start|>{'<|image_pad|>' * cells}<|vision_end|>")
        self.head = (*self._system, *self._picture)
        """The prompt up to the end of its picture."""
        self._assistant = self._encode("<|im_end|>\n<|im_start|>assistant\n")
        self._user = self._encode("<|im_end|>\n<|im_start|>user\n")
        self._end = self._encode("<|im_end|>")
        self.end = self._end[0]
        self.pad = self._encode("<|endoftext|>")[0]
        self._number = {i for t, i in tokenizer.get_vocab().items() if t.isdigit() and len(t) > 1}

    def asked(self, request: str) -> list[int]:
        """Ids of a request behind the picture, up to where the answer begins."""
        return [*self._encode(request), *self._assistant]

    def prompt(self, request: str) -> list[int]:
        """Ids of a whole prompt, up to where the answer begins."""
        return [*self.head, *self.asked(request)]

    def row(self, r: Round) -> tuple[list[int], list[int]]:
        """Ids of a round behind the picture, and their weights."""
        given, call = self.asked(r.request), self._call(r)
        return [*given, *call], [0] * len(given) + self._weights(call)

    def whole(self, r: Round) -> tuple[list[int], list[int]]:
        """Ids and weights of a round with its earlier answers."""
        given, call = self.asked_whole(r), self._call(r)
        return [*given, *call], [0] * len(given) + self._weights(call)

    def asked_whole(self, r: Round) -> list[int]:
        """Ids of a whole prompt with earlier answers, up to where the answer begins: request first, picture last."""
        if not r.past:
            return self.prompt(r.request)
        given = [*self._system, *self._encode(r.request)]
        for i, said in enumerate(r.past):
            earlier = self._encode(EARLIER) if i + 1 < len(r.past) else self._picture
            given += [*self._assistant, *self._encode(said), *self._user, *earlier]
        return [*given, *self._assistant]

    def _call(self, r: Round) -> list[int]:
        return [*self._encode(r.call), *self._end]

    def _weights(self, call: list[int]) -> list[int]:
        return [COORDINATE if i in self._number else 1 for i in call]


@lru_cache(maxsize=4)
def tokens_for(folder: str, system_prompt: str, width: int, height: int) -> Tokens:
    """The builder for a tokenizer's folder, read once a process."""
    return Tokens(Tokenizer.from_file(str(Path(folder) / "tokenizer.json")), system_prompt, width, height)


def letters_of(moments: list[Moment]) -> Letters:
    """The letters that can be told apart: printable ASCII."""
    found = [
        (i, round(x), _middle(line), ord(char) - 32)
        for i, m in enumerate(moments)
        for line in m.screen.lines
        for x, char in zip(line.centres, line.text, strict=True)
        if " " < char < "\x7f"
    ]
    columns = np.array(found, dtype=np.int16).reshape(-1, 4).T
    return Letters(*(np.ascontiguousarray(c) for c in columns))


def _middle(line: Line) -> int:
    return round(line.middle[1])


def padded(made: list[tuple[list[int], list[int], int]], pad: int) -> Rows:
    """Sequences as one array."""
    longest = max((len(ids) for ids, _, _ in made), default=1)
    ids = np.full((len(made), longest), pad, dtype=np.int32)
    weight = np.zeros((len(made), longest), dtype=np.uint8)
    for k, (sequence, weights, _) in enumerate(made):
        ids[k, : len(sequence)] = sequence
        weight[k, : len(weights)] = weights
    return Rows(ids, weight, np.array([i for _, _, i in made], dtype=np.int32))


def packed(made: list[list[tuple[list[int], list[int]]]], pad: int) -> Packed:
    """The rows of each screen (ids and weights) behind one another."""
    longest = max(8, *(sum(len(ids) for ids, _ in rows) for rows in made))
    shape = len(made), longest
    ids = np.full(shape, pad, dtype=np.int32)
    weight, row, place = (np.zeros(shape, dtype=np.uint8) for _ in range(3))
    row[:] = 255
    for b, rows in enumerate(made):
        at = 0
        for k, (sequence, weights) in enumerate(rows):
            end = at + len(sequence)
            ids[b, at:end], weight[b, at:end] = sequence, weights
            row[b, at:end], place[b, at:end] = k, range(len(sequence))
            at = end
    return Packed(ids, weight, row, place)
