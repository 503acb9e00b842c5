"""How well the base can do what it was taught: greedy answers to single requests about screens it never saw.

The words are those held out, pages and looks too; skills that need a place to look for are asked on labels as they are.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from cuarl.pretrain.calls import Kind
from cuarl.pretrain.dialogues import Tokens, cells, tokens_for
from cuarl.pretrain.moments import SIZES, moment
from cuarl.pretrain.skills import Round, rounds, with_past
from cuarl.pretrain.trainee import Trainee

ANSWER_TOKENS = 48
_AT_ONCE = 128


class Question(NamedTuple):
    """A request about a screen."""

    kind: Kind
    picture: np.ndarray
    round: Round


@dataclass(frozen=True)
class ExamMaker:
    """Draws questions of seeds that no training batch uses; picklable."""

    seed: int = 7
    per_screen: int = 3

    def __call__(self, start: int, count: int) -> list[Question]:
        """About ``count`` screens from number ``start`` on, every fourth of a desktop."""
        made: list[Question] = []
        for number in range(start, start + count):
            rng = random.Random(f"exam/{self.seed}/{number}")
            kind: Kind = "desktop" if number % 4 == 3 else "phone"
            m = moment(rng, kind, split="exam", ways=number % 4 == 0)
            found = rounds(rng, m.screen, self.per_screen)
            past = with_past(rng, m.screen) if number % 4 == 1 else None
            made += [Question(kind, m.picture, r) for r in (*found, *([past] if past else []))]
        return made


@dataclass(frozen=True)
class Exam:
    """A fixed set of questions, each in a prompt of its own, as it is in use."""

    questions: tuple[Question, ...]

    @classmethod
    def drawn(cls, screens: int, seed: int = 7) -> Exam:
        """Questions about ``screens`` screens."""
        return cls(tuple(ExamMaker(seed)(0, screens)))

    def scores(self, trainee: Trainee, tokenizer: str, system_prompts: dict[Kind, str]) -> dict[str, float]:
        """Share of right answers by skill, as ``exam/SKILL``, and how many were asked, as ``asked/SKILL``."""
        right: dict[str, list[bool]] = {}
        for question, said in self.answers(trainee, tokenizer, system_prompts):
            right.setdefault(question.round.skill, []).append(matches(said, question.round, SIZES[question.kind]))
        found = {f"exam/{skill}": float(np.mean(v)) for skill, v in sorted(right.items())}
        return found | {f"asked/{skill}": float(len(v)) for skill, v in sorted(right.items())}

    def answers(
        self, trainee: Trainee, tokenizer: str, system_prompts: dict[Kind, str]
    ) -> Iterable[tuple[Question, str]]:
        """Every question with the likeliest answer."""
        codec = Tokenizer.from_file(f"{tokenizer}/tokenizer.json")
        for kind in SIZES:
            tokens = tokens_for(tokenizer, system_prompts[kind], cells(kind, trainee.token))
            mine = [q for q in self.questions if q.kind == kind]
            for i in range(0, len(mine), _AT_ONCE):
                part = mine[i : i + _AT_ONCE]
                for question, ids in zip(part, _answers(trainee, tokens, part), strict=True):
                    yield question, codec.decode(ids, skip_special_tokens=False)


def _answers(trainee: Trainee, tokens: Tokens, questions: Sequence[Question]) -> list[list[int]]:
    """Likeliest answers, without the end token. What is behind a picture is computed anew for each token."""
    device, was = trainee.device, trainee.training
    trainee.eval()
    plain = [i for i, q in enumerate(questions) if not q.round.past]
    past = [i for i, q in enumerate(questions) if q.round.past]
    found: list[list[int]] = [[] for _ in questions]
    with torch.no_grad():
        seen = trainee.see(torch.from_numpy(np.stack([q.picture for q in questions])).to(device))
        if plain:
            prompts = trainee.prompts(seen.of(plain), tokens.head)
            rows = [tokens.asked(questions[i].round.request) for i in plain]
            _greedy(found, plain, rows, tokens, partial(trainee.follow, prompts), trainee)
        if past:
            rows = [tokens.asked_whole(questions[i].round) for i in past]
            _greedy(
                found,
                past,
                rows,
                tokens,
                partial(trainee.whole, seen, screen=torch.tensor(past, device=device)),
                trainee,
            )
    trainee.train(was)
    return found


def _greedy(
    found: list[list[int]], places: list[int], rows: list[list[int]], tokens: Tokens, states: Any, trainee: Trainee
) -> None:
    """Fill ``found`` at ``places`` with the answers to ``rows``."""
    unfinished = set(range(len(rows)))
    device = trainee.device
    for _ in range(ANSWER_TOKENS):
        longest = max(map(len, rows))
        ids = torch.tensor([r + [tokens.pad] * (longest - len(r)) for r in rows], device=device)
        at = torch.tensor([len(r) - 1 for r in rows], device=device)
        hidden = states(ids)[torch.arange(len(rows), device=device), at]
        for i, token in enumerate(trainee.logits(hidden).argmax(-1).tolist()):
            if i in unfinished and token == tokens.end:
                unfinished.discard(i)
            elif i in unfinished:
                found[places[i]].append(token)
                rows[i].append(token)
        if not unfinished:
            return


def matches(text: str, wanted: Round, size: tuple[int, int]) -> bool:
    """Whether an answer does what was asked: a tap inside the box, a swipe the right way, else the very same call."""
    if text == wanted.call:
        return True
    got, right = _arguments(text), _arguments(wanted.call)
    if not got or not right or got.get("action") != right["action"]:
        return False
    try:
        if wanted.box is not None and not _inside(got["coordinate"], wanted.box, size):
            return False
        if got["action"] == "swipe":
            return all(
                np.sign(_shift(got)) == np.sign(np.where(np.abs(_shift(right)) > 60, _shift(right), _shift(got)))
            )
        if got["action"] == "scroll":
            return bool(np.sign(got["pixels"]) == np.sign(right["pixels"]))
    except (KeyError, TypeError, IndexError):
        return False
    return wanted.box is not None


def _inside(at: Sequence[int], box: tuple[int, int, int, int], size: tuple[int, int]) -> bool:
    x, y = (at[k] * size[k] / 1000 for k in (0, 1))
    return bool(box[0] <= x < box[2] and box[1] <= y < box[3])


def _shift(arguments: dict[str, Any]) -> np.ndarray:
    shift: np.ndarray = np.array(arguments["coordinate2"]) - np.array(arguments["coordinate"])
    return shift


def _arguments(text: str) -> dict[str, Any]:
    inner = text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    try:
        found = json.loads(inner)["arguments"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
