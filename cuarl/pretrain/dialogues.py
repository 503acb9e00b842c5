"""Screens and rounds to token arrays, in worker processes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

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
    """Sequences behind one another."""

    ids: np.ndarray
    """(N,) int32."""
    weight: np.ndarray
    """(N,) uint8; 0: not trained."""
    lengths: np.ndarray
    """(rows,) int64: tokens of each."""
    screen: np.ndarray
    """(rows,) int64: index of the screen that each is about."""


class Asked(NamedTuple):
    """The rounds about each screen of a batch, behind one another, screen by screen."""

    ids: np.ndarray
    """(N,) int32."""
    weight: np.ndarray
    """(N,) uint8; 0: not trained."""
    lengths: np.ndarray
    """(rounds,) int64: tokens of each round."""
    tokens: np.ndarray
    """(B,) int64: tokens of each screen's rounds together."""


class Dialogues(NamedTuple):
    """A batch as workers make it."""

    kind: Kind
    screens: np.ndarray
    """(B, height, width, 3) uint8."""
    rounds: tuple[Asked, ...]
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
    token: int = 16
    """Pixels of an image token's side."""
    sets: int = 2
    past_share: float = 0.25
    """Share of the screens that are also asked for with earlier answers in the prompt."""

    def __call__(self, seed: int, count: int, kind: Kind, soft: float) -> Dialogues:
        """``count`` screens; ``soft`` is the share of rounds in no known wording. Depends on the arguments alone."""
        tokens = tokens_for(self.tokenizer, self.system_prompts[kind], cells(kind, self.token))
        rng = random.Random(f"dialogue/{seed}/{kind}")
        moments = [moment(rng, kind, ways=rng.random() < max(0.15, soft)) for _ in range(count)]
        asked = tuple(self._rounds(rng, tokens, moments, soft) for _ in range(self.sets))
        past = tuple(self._past(rng, tokens, moments) for _ in range(self.sets))
        return Dialogues(kind, np.stack([m.picture for m in moments]), asked, past, letters_of(moments))

    def _rounds(self, rng: random.Random, tokens: Tokens, moments: list[Moment], soft: float) -> Asked:
        made: list[list[tuple[list[int], list[int]]]] = []
        for m in moments:
            found = soft_rounds(rng, m.screen, ROUNDS, self.softness, soft) if soft else rounds(rng, m.screen, ROUNDS)
            rows = [tokens.row(r) for r in found if self.may(r)]
            made.append([row for row in rows if len(row[0]) <= LONGEST])
        return asked_of(made)

    def _past(self, rng: random.Random, tokens: Tokens, moments: list[Moment]) -> Rows:
        made: list[tuple[list[int], list[int], int]] = []
        for i in range(round(len(moments) * self.past_share)):
            found = with_past(rng, moments[i].screen)
            if found is not None and self.may(found):
                made.append((*tokens.whole(found), i))
        return rows_of(made)

    def may(self, r: Round) -> bool:
        """Whether a round may be trained."""
        return r.request.casefold().rstrip(".") not in self.forbidden


class Tokens:
    """Builds sequences of ids: the prompt with its picture, and what follows on it."""

    def __init__(self, tokenizer: Tokenizer, system_prompt: str, cells: int) -> None:
        self._encode = lru_cache(maxsize=1 << 16)(lambda text: tuple(tokenizer.encode(text).ids))
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
        given, call = self.asked(r.request), self.answer(r)
        return [*given, *call], [0] * len(given) + self._weights(call)

    def whole(self, r: Round) -> tuple[list[int], list[int]]:
        """Ids and weights of a round with its earlier answers."""
        given, call = self.asked_whole(r), self.answer(r)
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

    def answer(self, r: Round) -> list[int]:
        """Ids of the answer, end of turn included."""
        return [*self._encode(r.call), *self._end]

    def _weights(self, call: list[int]) -> list[int]:
        return [COORDINATE if i in self._number else 1 for i in call]


@lru_cache(maxsize=4)
def tokens_for(folder: str, system_prompt: str, cells: int) -> Tokens:
    """The builder for a tokenizer's folder and pictures of ``cells`` tokens, read once a process."""
    return Tokens(Tokenizer.from_file(str(Path(folder) / "tokenizer.json")), system_prompt, cells)


def cells(kind: Kind, token: int) -> int:
    """Image tokens of a screen, each ``token`` pixels wide and high."""
    width, height = SIZES[kind]
    return (width // token) * (height // token)


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


def rows_of(made: list[tuple[list[int], list[int], int]]) -> Rows:
    """Sequences (ids, weights, screen) as arrays."""
    ids = [i for sequence, _, _ in made for i in sequence]
    weight = [w for _, weights, _ in made for w in weights]
    lengths, screen = [len(sequence) for sequence, _, _ in made], [i for _, _, i in made]
    return Rows(*_arrays(ids, weight), *(np.array(a, dtype=np.int64) for a in (lengths, screen)))


def asked_of(made: list[list[tuple[list[int], list[int]]]]) -> Asked:
    """The rounds (ids, weights) of each screen as arrays."""
    ids = [i for rows in made for sequence, _ in rows for i in sequence]
    weight = [w for rows in made for _, weights in rows for w in weights]
    lengths = [len(sequence) for rows in made for sequence, _ in rows]
    tokens = [sum(len(sequence) for sequence, _ in rows) for rows in made]
    return Asked(*_arrays(ids, weight), *(np.array(a, dtype=np.int64) for a in (lengths, tokens)))


def _arrays(ids: list[int], weight: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(ids, dtype=np.int32), np.array(weight, dtype=np.uint8)
