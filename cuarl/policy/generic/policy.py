"""Any model that transformers can run, by its own forward pass.

Qwen-VL models are taken apart to encode each prompt and picture once (``qwen_vl``). Other families are run as they are:
sampling by ``generate`` with transformers' own caches, scoring by one forward pass over prompt and answer. Both draw
from, and score, the same distribution as everywhere (``distribution``), from the logits that the model itself gives, so
whatever a family does to them behind its head (soft caps, scales) is in both.

Rows are padded on the left for sampling, as ``generate`` wants it, and on the right for scoring, where positions are
then those of the tokens themselves, whatever a family makes of positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, StoppingCriteria

from cuarl.policy import companions
from cuarl.policy.answering import draw_next, room
from cuarl.policy.base import ScoreOptions, TokenScores
from cuarl.policy.distribution import NEVER
from cuarl.policy.generic.processor import FamilyPictures
from cuarl.policy.generic.render import GenericRenderer
from cuarl.policy.inputs import Inputs, Row, Side, arrange, check_placeholders, packed_answers, pad
from cuarl.policy.jobs import Job
from cuarl.policy.score import score_logits
from cuarl.policy.special import SpecialIds
from cuarl.policy.transformers_policy import TransformersPolicy

_ROWS_AT_ONCE = 64
"""Rows sampled in one batch: each carries its pictures as pixels, and its own cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericInputs(Inputs):
    """A batch with what the model's own forward pass takes for the pictures, by name."""

    pictures: dict[str, torch.Tensor] = field(default_factory=dict)


class GenericPolicy(TransformersPolicy):
    """A policy of any family."""

    def __init__(
        self, model: Any, pictures: FamilyPictures, special: SpecialIds, *, name: str, revision: str | None = None
    ) -> None:
        renderer = GenericRenderer(pictures, special)
        super().__init__(model, pictures.processor.tokenizer, renderer, name=name, revision=revision)
        self.pictures = pictures

    @property
    def unpadded(self) -> bool:
        """Whether answers can be scored without padding: not by a forward pass of any family's."""
        return False

    def save_companions(self, folder: str) -> None:
        """Write tokenizer and processor into ``folder``, beside the weights."""
        companions.write(folder, self.pictures.processor, self.tokenizer)

    def collate(self, rows: Sequence[Row], *, padding: Side = "left", pack: bool = False) -> GenericInputs:
        """Pad ``rows`` and process their pictures, on this policy's device (see ``Policy.collate``).

        Every row has its own prompt, but those that lie inside another's with ``pack``.
        """
        prompts = arrange(rows, share=False, pack=pack)
        check_placeholders(prompts.rows, self.special.image, self.renderer.picture_tokens)
        ids, mask = pad([r.prompt_ids for r in prompts.rows], self.special.pad, padding)
        answers, answer_mask = pad([r.answer_ids for r in rows], self.special.pad, "right")
        return GenericInputs(
            prompt_ids=ids,
            prompt_mask=mask,
            prompt_of=torch.tensor(prompts.of),
            last=(mask * torch.arange(mask.shape[1])).amax(1),
            answer_ids=answers,
            answer_mask=answer_mask,
            pictures=self.pictures.tensors([r.screenshots for r in prompts.rows]),
            packed=packed_answers(rows, prompts, mask),
        ).to(self.device)

    def answer(self, jobs: Sequence[Job]) -> None:
        """Sample an answer to every job. A row's draws depend on its own seed and logits alone."""
        with self.on_device(), self.folded(), torch.inference_mode():
            for start in range(0, len(jobs), _ROWS_AT_ONCE):
                self._answer_at_once(jobs[start : start + _ROWS_AT_ONCE])

    def _answer_at_once(self, jobs: Sequence[Job]) -> None:
        inputs = self.collate([Row(j.prompt.ids, j.prompt.screenshots) for j in jobs])
        config = GenerationConfig(
            max_new_tokens=max(room(self, j) for j in jobs),
            do_sample=False,
            use_cache=True,
            pad_token_id=self.special.pad,
        )
        with _own_settings(self.base, config):
            self.base.generate(
                input_ids=inputs.prompt_ids,
                attention_mask=inputs.prompt_mask.long(),
                generation_config=config,
                logits_processor=[_Draws(self, jobs)],
                stopping_criteria=[_Stopped(jobs)],
                **self._seen(inputs, inputs.prompt_ids),
            )

    def score(self, inputs: Inputs, temperature: torch.Tensor, options: ScoreOptions) -> TokenScores:
        """One pass over prompts and answers, the head on the tokens wanted alone (see ``Policy.score``)."""
        assert isinstance(inputs, GenericInputs), "this policy's own"
        with self.on_device():
            logits, hidden = self._logits(inputs)
            targets = inputs.answer_ids[inputs.answer_mask]
            return TokenScores(*score_logits(logits, targets, temperature, self.suppressed()), hidden)

    def _logits(self, inputs: GenericInputs) -> tuple[torch.Tensor, torch.Tensor]:
        """Of the N real answer tokens, row by row: logits (N, V) float32, and the states (N, D) before the head."""
        behind = inputs.behind
        ids = torch.cat([inputs.prompt_ids, behind.answer_ids[:, :-1]], dim=1)
        mask = torch.cat([inputs.prompt_mask, behind.answer_mask[:, :-1]], dim=1)
        # real tokens to the front: positions are then those of an unpadded row
        order = (~mask).to(torch.int8).argsort(dim=1, stable=True)
        ids, mask = ids.gather(1, order), mask.gather(1, order)
        first = torch.arange(len(ids), device=ids.device)[:, None] * ids.shape[1]
        steps = torch.arange(behind.answer_ids.shape[1], device=ids.device)
        places = first + inputs.prompt_mask.sum(1, keepdim=True) - 1 + steps
        if inputs.packed is None:
            wanted = places[inputs.answer_mask]
        else:
            inside = inputs.packed.inside - inputs.prompt_mask.int().argmax(1, keepdim=True)
            wanted = inputs.packed.gather(places, first + inside)
        found: list[torch.Tensor] = []

        def narrow(_: object, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            found.append(arguments[0].flatten(0, -2)[wanted])
            return (found[0][None], *arguments[1:])

        hook = self.base.get_output_embeddings().register_forward_pre_hook(narrow)
        try:
            out = self.base(input_ids=ids, attention_mask=mask.long(), use_cache=False, **self._seen(inputs, ids))
        finally:
            hook.remove()
        return out.logits[0].float(), found[0]

    def forget_pictures(self) -> None:
        """None is kept."""

    def recall_pictures(self) -> None:
        """None is kept."""

    def forget_prompts(self) -> None:
        """None is kept."""

    def release_memory(self, keep_bytes: int = 0) -> None:
        """None is kept."""

    def take_work(self) -> None:
        """Nobody counts."""

    def _seen(self, inputs: GenericInputs, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        pictures = {
            name: value.to(self.dtype) if value.is_floating_point() else value
            for name, value in inputs.pictures.items()
        }
        return pictures | self.pictures.token_types(ids, self.special.image)


class _Draws(LogitsProcessor):
    """Leaves ``generate`` no choice: of each row, only the token that was drawn is possible."""

    def __init__(self, policy: GenericPolicy, jobs: Sequence[Job]) -> None:
        self._policy, self._jobs = policy, jobs

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        tokens = draw_next(self._policy, self._jobs, scores.float())
        return torch.full_like(scores, NEVER, dtype=torch.float32).scatter_(1, tokens[:, None], 0.0)


class _Stopped(StoppingCriteria):
    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: object) -> torch.Tensor:
        return torch.tensor([job.stop is not None for job in self._jobs], device=input_ids.device)


@contextmanager
def _own_settings(base: Any, config: GenerationConfig) -> Iterator[None]:
    """Inside, ``generate`` adds nothing of the model's own settings (penalties, cut-offs) to ``config``."""
    before = base.generation_config
    base.generation_config = config
    try:
        yield
    finally:
        base.generation_config = before
