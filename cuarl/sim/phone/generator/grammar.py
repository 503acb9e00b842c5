"""From wordings to sentences: draws among alternatives, and which wordings are held out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cuarl.sim.phone.generator.draw import Draw
from cuarl.sim.phone.generator.wordings import ALONE, CHOOSING, SPARING, TOGETHER, WORDINGS

EVERY = 4
"""Of this many wordings the last is held out."""
_EITHER = re.compile(r"\(([^()]*\|[^()]*)\)")


class Grammar:
    """Words goals, with the common wordings or with the held-out ones alone."""

    def __init__(self, draw: Draw, *, held_out: bool) -> None:
        self._draw, self._held_out = draw, held_out

    def clause(self, kind: str, words: Mapping[str, str], *, question: bool = False) -> str:
        """What a part asks for, as a clause that begins with a verb, or with ``question`` perhaps as a question."""
        kept = self._kept(WORDINGS[kind])
        fitting = [text for text in kept if question or not text.startswith("?")]
        said = self._said(self._draw.choose(fitting or kept), words)
        return said if question else said.replace("?", "answer this: ", 1)

    def alone(self, clause: str) -> str:
        """A sentence with one clause."""
        if clause.startswith("?"):
            return capital(clause[1:] + ("." if "?" in clause[1:] else "?"))
        return capital(self._said(self._draw.choose(self._kept(ALONE)), {"a": clause}))

    def together(self, clauses: Sequence[str]) -> str:
        """A sentence, or two, with several clauses."""
        *first, last = clauses
        words = {"all": ", ".join(first), "last": last, "Last": capital(last)}
        return capital(self._said(self._draw.choose(self._kept(TOGETHER)), words))

    def sparing(self, clause: str, other: str) -> str:
        """A clause, and that something else stays as it is."""
        return capital(self._said(self._draw.choose(self._kept(SPARING)), {"a": clause, "other": other}))

    def choosing(self, fact: str, clause: str, other: str) -> str:
        """One clause if something is so, else another one."""
        words = {"fact": fact, "a": clause, "b": other}
        return capital(self._said(self._draw.choose(self._kept(CHOOSING)), words))

    def _kept(self, texts: Sequence[str]) -> list[str]:
        return [text for i, text in enumerate(texts) if (i % EVERY == EVERY - 1) == self._held_out]

    def _said(self, text: str, words: Mapping[str, str]) -> str:
        drawn = _EITHER.sub(lambda found: self._draw.choose(found[1].split("|")), text)
        for name, value in words.items():
            drawn = drawn.replace(f"{{{name}}}", value)
        return " ".join(drawn.split())


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
