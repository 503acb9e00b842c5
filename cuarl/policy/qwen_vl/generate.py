"""Sampling answers for a batch of prompts: one pass over the distinct prompts, then one token a pass.

No ``generate``: its bookkeeping costs more than the forward pass of a small model, and launch-binds a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from cuarl.policy.answering import draw_next
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.qwen_vl.decoder import PromptCache, RowCache, causal_mask
from cuarl.policy.qwen_vl.inputs import QwenInputs

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

_COMPACT_BELOW = 0.5
"""Share of unfinished rows at which dropping the others pays for copying the cache."""


def answer_by_layers(policy: QwenVLPolicy, jobs: Sequence[Job]) -> None:
    """Answer every job by the model's own layers; in tests, the reference of the engine."""
    with policy.folded(), torch.inference_mode():
        _Batch(policy, jobs).run()


class _Batch:
    """The rows still being sampled, in the order of their caches."""

    def __init__(self, policy: QwenVLPolicy, jobs: Sequence[Job]) -> None:
        self.policy, self.rows = policy, list(jobs)

    def run(self) -> None:
        policy = self.policy
        inputs = policy.collate([Row(job.prompt.ids, job.prompt.screenshots) for job in self.rows])
        hidden, cache = self._prompts(inputs)
        # (B, Lp) for left-padded prompts; None where nothing is padded, which is the cheaper attention
        seen = inputs.prompt_mask[inputs.prompt_of] if inputs.padded else None
        position = inputs.answer_start[inputs.prompt_of]
        while True:
            tokens = draw_next(policy, self.rows, policy.decoder.logits(hidden))
            alive = [i for i, job in enumerate(self.rows) if job.stop is None]
            if not alive:
                return
            if len(alive) <= _COMPACT_BELOW * len(self.rows):
                keep = torch.tensor(alive, device=tokens.device)
                self.rows = [self.rows[i] for i in alive]
                tokens, position = tokens[keep], position[keep]
                seen = None if seen is None else seen[keep]
                cache.keep(keep)
            if seen is not None:
                seen = torch.nn.functional.pad(seen, (0, 1), value=True)
            hidden = policy.decoder.run(
                policy.decoder.embed(tokens[:, None]),
                position.expand(3, 1, -1).transpose(1, 2),
                None if seen is None else seen[:, None, None],
                cache,
            )[:, -1]
            cache.advance(1)
            position = position + 1

    def _prompts(self, inputs: QwenInputs) -> tuple[torch.Tensor, RowCache]:
        """Encode the distinct prompts; the last hidden state (B, D) and the cache of each row."""
        policy, shared = self.policy, PromptCache()
        hidden, deep = policy.embed_prompts(inputs)
        mask = causal_mask(inputs.prompt_mask) if inputs.padded else None
        index = inputs.vision.index if inputs.vision else None
        last = policy.decoder.run(
            hidden, inputs.prompt_positions, mask, shared, image_index=index, deep=deep, wanted=inputs.last[:, None]
        )
        return last[:, 0][inputs.prompt_of], RowCache(shared, inputs.prompt_of)
