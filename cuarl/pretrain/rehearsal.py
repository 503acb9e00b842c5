"""Rounds about drawn screens as records of turns, so that whoever imitates something else keeps what it was taught.

Imitating solved tasks alone unlearns the skills that the base brought along: pointing, reading, typing, finding one's
way. So part of each batch is what it was pre-trained with, drawn anew. Prompts are those that an agent would be given
with the request as its goal, token for token.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from PIL import Image

from cuarl.pretrain.calls import Kind
from cuarl.pretrain.dialogues import Tokens, tokens_for
from cuarl.pretrain.moments import moment
from cuarl.pretrain.skills import Round, rounds, with_past
from cuarl.trajectory import Sampled
from cuarl.types import ImageRef, Screenshot

ROUNDS = 8
"""About one screen: drawing it takes far longer than asking about it, and more rounds would be more of the same."""
WAYS = 0.4
"""Share of the screens from which ways part: finding one's way is what imitation costs first."""


class Rehearsed(NamedTuple):
    """A screen, and what is said about it."""

    png: bytes
    picture: ImageRef
    rounds: tuple[tuple[str, Sampled], ...]
    """Requests, each with its prompt and answer."""

    @property
    def tokens(self) -> int:
        """Tokens of the answers."""
        return sum(len(said.token_ids) for _, said in self.rounds)


@dataclass(frozen=True)
class RehearsalMaker:
    """Draws screens from seeds; picklable, so that worker processes can have it."""

    tokenizer: str
    """Folder of the tokenizer."""
    system_prompts: Mapping[Kind, str]
    cells: Mapping[Kind, int]
    """Image tokens of a screen."""
    forbidden: frozenset[str] = frozenset()
    """Requests that must not occur, case-folded: goals of tasks."""
    past: float = 0.0
    """Share of the rounds whose prompt shows earlier answers."""

    def __call__(self, seed: str, kind: Kind) -> Rehearsed:
        """One screen with its rounds. Depends on the arguments alone."""
        rng = random.Random(f"rehearsal/{seed}/{kind}")
        tokens = tokens_for(self.tokenizer, self.system_prompts[kind], self.cells[kind])
        m = moment(rng, kind, ways=rng.random() < WAYS)
        shot = Screenshot(Image.fromarray(m.picture))
        asked = [r for r in rounds(rng, m.screen, ROUNDS) if rng.random() >= self.past]
        told = [found for _ in range(ROUNDS - len(asked)) if (found := with_past(rng, m.screen))]
        kept = [r for r in (*asked, *told) if r.request.casefold().rstrip(".") not in self.forbidden]
        return Rehearsed(shot.png(), shot.ref, tuple((r.request, _said(tokens, r, shot)) for r in kept))


def _said(tokens: Tokens, r: Round, shot: Screenshot) -> Sampled:
    prompt, answer = tokens.asked_whole(r), tokens.answer(r)
    return Sampled(prompt_ids=tuple(prompt), images=(shot.ref,), token_ids=tuple(answer), text=r.call)
