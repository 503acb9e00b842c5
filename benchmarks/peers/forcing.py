"""Makes cuarl's sampler draw the contest's answers, on the device and without another capture.

Tokens that a position may not have are masked between the model and the draw; nothing else of the sampler is touched,
and the recorded log-probabilities remain the model's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.peers.answers import Answers
from cuarl.policy import answering
from cuarl.policy.distribution import NEVER, Drawn
from cuarl.policy.jobs import Job
from cuarl.policy.qwen_vl.engine import engine
from cuarl.policy.qwen_vl.engine.step import Step


class Forcing:
    """From now on, in the whole process. ``expect`` says which kind of answer a sample must be, by its seed."""

    def __init__(self, answers: Answers, vocabulary: int, device: torch.device) -> None:
        self._forbidden = answers.forbidden(vocabulary, device)
        self._kinds: dict[int, int] = {}
        self._now = self._forbidden[:, 0]
        self._real_draw, self._real_next = answering.draw, answering.draw_next
        self._force_first_tokens()
        self._force_steps()

    def expect(self, seed: int, kind: int) -> None:
        """The sample of this seed is of that kind."""
        self._kinds[seed] = kind

    def _force_first_tokens(self) -> None:
        """Tokens drawn outside a captured step: all on a CPU, the first of an answer on a GPU."""
        answering.draw = self._draw
        for module in list(sys.modules.values()):
            if getattr(module, "draw_next", None) is self._real_next:
                module.draw_next = self._draw_next  # type: ignore[attr-defined]

    def _force_steps(self) -> None:
        """In a step the kind of a row lies in ``top_k``, which moves with the row and is read only to truncate."""
        forbidden, real_state, real_advance = self._forbidden, engine.state, Step._advance

        def state(answers: Sequence[Any]) -> dict[str, torch.Tensor]:
            return real_state(answers) | {"top_k": torch.tensor([self._kinds[a.job.seed] for a in answers])}

        def advance(step: Step, logprobs: torch.Tensor) -> None:
            if step.truncated:
                raise RuntimeError("the contest samples from the whole distribution")
            position = step.drawn.clamp(max=forbidden.shape[1] - 1)
            real_advance(step, logprobs.masked_fill(forbidden[step.top_k, position], NEVER))

        engine.state = state
        Step._advance = advance  # type: ignore[method-assign]

    def _draw_next(self, policy: Any, rows: Sequence[Job], logits: torch.Tensor) -> torch.Tensor:
        last = self._forbidden.shape[1] - 1
        kinds = torch.tensor([self._kinds[job.seed] for job in rows], device=logits.device)
        positions = torch.tensor([min(len(job.tokens), last) for job in rows], device=logits.device)
        self._now = self._forbidden[kinds, positions]
        return self._real_next(policy, rows, logits)

    def _draw(self, logprobs: torch.Tensor, chance: torch.Tensor) -> Drawn:
        return self._real_draw(logprobs.masked_fill(self._now, NEVER), chance)
