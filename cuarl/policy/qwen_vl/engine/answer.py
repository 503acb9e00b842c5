"""One answer in the making, as the engine sees it: its job, its pages, and how far it has been computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from cuarl.policy.jobs import Job
from cuarl.policy.qwen_vl.engine.pages import PAGE, Node, Pages, page_keys
from cuarl.policy.qwen_vl.engine.prompts import PromptState
from cuarl.policy.qwen_vl.engine.step import CHANCES

_AHEAD = 4
"""Pages taken at a time for an answer that grows."""


@dataclass(slots=True)
class Answer:
    """A row of a batch.

    ``chain`` are the pages that its prompt fills, ``own`` those behind; ``launched`` counts its tokens after the first
    that were asked of the device, ``limit`` how many it may have.
    """

    job: Job
    prompt: PromptState
    chain: list[Node]
    own: list[int]
    limit: int
    launched: int = 0

    @property
    def length(self) -> int:
        """Tokens whose keys and values are there when all that was launched is done."""
        return len(self.prompt.ids) + self.launched

    @property
    def pages(self) -> list[int]:
        """In order."""
        return [node.page for node in self.chain] + self.own

    @property
    def at_limit(self) -> bool:
        """Whether what was launched is all that it may have."""
        return self.launched + 1 >= self.limit

    def needs(self) -> int:
        """Pages to take before the next token."""
        have = len(self.chain) + len(self.own)
        if self.length < have * PAGE:
            return 0
        return max(1, min(_AHEAD, pages_for(len(self.prompt.ids) + self.limit) - have))

    def close(self, pages: Pages, image: int) -> None:
        """Let what was computed be used again, and return the rest."""
        ids = (*self.prompt.ids, *self.job.tokens[:-1])
        pictures = [
            (s.digest, end - first) for s, (first, end) in zip(self.prompt.screenshots, self.prompt.spans, strict=True)
        ]
        first = len(self.chain)
        keys = page_keys(ids, image, pictures)[first : first + len(self.own)]
        known = pages.remember(self.chain, keys, self.own[: len(keys)])
        pages.give(self.own[len(keys) :])
        pages.leave(known)
        pages.leave(self.chain)


def pages_for(tokens: int) -> int:
    """Pages that so many tokens need."""
    return -(-tokens // PAGE)


def state(answers: Sequence[Answer]) -> dict[str, torch.Tensor]:
    """What ``Step.load`` takes, for answers whose first token is drawn."""
    jobs = [a.job for a in answers]
    tables = [a.pages for a in answers]
    width = max(map(len, tables))
    ones = [1] * len(jobs)
    return {
        "tokens": torch.tensor([j.tokens[-1] for j in jobs]),
        "position": torch.tensor([a.prompt.next + a.launched for a in answers]),
        "lengths": torch.tensor([a.length for a in answers]),
        "active": torch.tensor(ones),
        "table": torch.tensor([t + [0] * (width - len(t)) for t in tables], dtype=torch.int32),
        "temperature": torch.tensor([j.params.temperature or 1.0 for j in jobs]),
        "top_k": torch.tensor([j.params.top_k for j in jobs]),
        "top_p": torch.tensor([j.params.top_p for j in jobs], dtype=torch.float32),
        "chance": chances(jobs, 0),
        "drawn": torch.tensor(ones),
    }


def chances(jobs: Sequence[Job], first: int) -> torch.Tensor:
    """(jobs, CHANCES) float64: the numbers that decide the tokens from ``first`` on; negative for greedy ones."""
    rows = [[-1.0] * CHANCES if j.greedy else j.chance.block(first, CHANCES) for j in jobs]
    return torch.tensor(rows, dtype=torch.float64)


def truncated(jobs: Sequence[Job]) -> bool:
    """Whether any of them draws from less than the whole distribution."""
    return any(j.params.top_k or j.params.top_p < 1 for j in jobs)
