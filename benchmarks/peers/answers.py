"""Answers that a random model can give: some sampled letters, then one call whose digits are sampled."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.peers.model import CALL
from benchmarks.peers.work import Work

_LATE = 4
"""Tokens behind the longest answer that a sampler may make before it sees that the answer has ended."""


class Answers:
    """Which tokens each position of an answer may have. Answers of one kind have as many letters."""

    def __init__(self, work: Work, tokenizer: Any) -> None:
        def ids(text: str) -> list[int]:
            return list(tokenizer.encode(text, add_special_tokens=False))

        self._work = work
        self._letters = sorted(tokenizer.convert_tokens_to_ids(list(string.ascii_lowercase)))
        self._digits = sorted(tokenizer.convert_tokens_to_ids(list(string.digits)))
        self._end: int = tokenizer.eos_token_id
        self._start = ids("<|im_start|>assistant\n")
        before, between, after = CALL.format(x="X", y="X").split("X")
        # three digits, the first of which is never 0
        number = [sorted(ids("".join(string.digits[1:]))), self._digits, self._digits]
        fixed = [[[token] for token in ids(text)] for text in (before, between, after)]
        self._call = [*fixed[0], *number, *fixed[1], *number, *fixed[2], [self._end]]
        attempts, turns = range(work.group), range(work.turns)
        self.kinds = sorted({work.letters(a, t) for a in attempts for t in turns})

    def kind(self, attempt: int, turn: int) -> int:
        """The kind of an attempt's answer."""
        return self.kinds.index(self._work.letters(attempt, turn))

    def length(self, attempt: int, turn: int) -> int:
        """Its tokens, the end included."""
        return self._work.letters(attempt, turn) + len(self._call)

    @property
    def longest(self) -> int:
        """Tokens of the longest answer."""
        return self.kinds[-1] + len(self._call)

    def forbidden(self, vocabulary: int, device: Any) -> torch.Tensor:
        """(kinds, positions, vocabulary) bool. Behind its end an answer can only end once more."""
        forbidden = torch.ones((len(self.kinds), self.longest + _LATE, vocabulary), dtype=torch.bool)
        for kind, letters in enumerate(self.kinds):
            slots = [self._letters] * letters + self._call
            slots += [[self._end]] * (forbidden.shape[1] - len(slots))
            for position, allowed in enumerate(slots):
                forbidden[kind, position, allowed] = False
        return forbidden.to(device)

    def blank(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """A prompt whose earlier answers have one letter and one digit only, so that it is the same on both sides."""
        letters, digits = set(self._letters), set(self._digits)
        blank, inside = list(prompt), False
        for i, token in enumerate(prompt):
            inside = (inside or tuple(prompt[i - len(self._start) : i]) == tuple(self._start)) and token != self._end
            if inside and token in letters:
                blank[i] = self._letters[0]
            elif inside and token in digits:
                blank[i] = self._digits[0]
        return tuple(blank)


class Witness:
    """What a side really did, which must be what the other did."""

    def __init__(self, answers: Answers) -> None:
        self._answers, self._seen = answers, hashlib.sha256()
        self.found: dict[str, Any] = {}

    def step(self, prompts: Sequence[Sequence[Sequence[int]]], answers: int, sequences: int, trained: int) -> None:
        """One step: ``prompts[turn][episode]``, tokens of all answers, of all trained sequences, and trained ones."""
        for turn in prompts:
            for prompt in turn:
                self._seen.update(repr(self._answers.blank(prompt)).encode())
        self.found = {
            "prompts": self._seen.hexdigest()[:16],
            "prompt_tokens": [sum(map(len, turn)) for turn in prompts],
            "answer_tokens": answers,
            "sequence_tokens": sequences,
            "trained_tokens": trained,
        }
