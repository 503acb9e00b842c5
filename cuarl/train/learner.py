"""The learner: a batch of episodes in, changed weights and metrics out.

One training step makes ``num_substeps`` updates. For each update: rows (``batch``), this process's share of them,
micro-batches, forward and backward of each, gradients summed over the processes, clipped as a whole, one AdamW step.
Weights of tokens are fixed for the whole update before its first backward pass, so the gradient is the same however the
rows are split over micro-batches and processes.

A step depends only on the weights, the optimiser's moments, the batch and (seed, step): chance and caches start anew
with each step. That is what makes an interrupted run equal to one that was not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from pydantic import NonNegativeInt, PositiveInt

from cuarl.errors import TrainError
from cuarl.policy.inputs import ModelInputs, Row
from cuarl.policy.model import PolicyModel
from cuarl.policy.score import Scorer
from cuarl.train.batch import (
    Batch,
    BatchConfig,
    TokenRow,
    Update,
    micro_batches,
    policy_updates,
    share_of_rank,
    supervised_updates,
)
from cuarl.train.gradients import dead_adapters, reproducible, sum_over_processes
from cuarl.train.loss import Loss, LossConfig, Tokens, cross_entropy, policy_loss
from cuarl.train.processes import join_processes
from cuarl.train.report import StepReport
from cuarl.train.schedule import OptimConfig, learning_rate
from cuarl.types import Record, Screenshot

_MAX_NONFINITE = 3
"""Updates in a row without a finite gradient after which training stops."""


class LearnerConfig(Record):
    """Everything that decides what a batch does to the weights."""

    algorithm: Literal["grpo", "sft"] = "grpo"
    batch: BatchConfig = BatchConfig()
    loss: LossConfig = LossConfig()
    optim: OptimConfig = OptimConfig()
    max_steps: PositiveInt = 64
    """Length of the run in training steps, for the learning rate's schedule."""
    seed: NonNegativeInt = 0
    gradient_checkpointing: bool = False
    """Keep no activations of the layers and compute them again in the backward pass."""


class Learner:
    """Trains one policy in place. Every process of a run has one, and calls the same methods in the same order."""

    def __init__(self, policy: PolicyModel, config: LearnerConfig, accelerator: Accelerator | None = None) -> None:
        self.policy = policy
        self.config = config
        self.accelerator = accelerator or join_processes(policy.device.type)
        self._scorer = Scorer(policy).eval()
        self._parameters = list(policy.parameters())
        if not self._parameters:
            raise TrainError("nothing of the policy is trained", where=policy.name)
        for p in self._parameters:
            p.data = broadcast(p.data)
        if config.gradient_checkpointing:
            _checkpoint_activations(policy.base)
        optim = config.optim
        optimizer = torch.optim.AdamW(
            self._parameters, lr=0.0, betas=(optim.adam_beta1, optim.adam_beta2), eps=optim.adam_eps,
            weight_decay=optim.weight_decay,
        )  # fmt: skip
        self._optimizer: Any = self.accelerator.prepare(optimizer)
        self._checked = False
        self._nonfinite = 0

    def begin_step(self, step: int) -> None:
        """Start training step ``step``, before its episodes are collected: chance and caches start anew."""
        torch.manual_seed(random.Random(f"{self.config.seed}/{step}").getrandbits(63))
        # Encoded pictures may differ in the last bit with the pictures they were encoded beside.
        self.policy.vision.cache.clear()

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn from ``batch``, the whole batch on every process; returns the metrics of the step.

        Raises TrainError for turns that can't be trained on, for adapters that get no gradient in the first update,
        and after several gradients in a row that are not finite.
        """
        config = self.config
        rate = learning_rate(config.optim, step, config.max_steps, adapter=self.policy.has_adapter)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        report = StepReport(rate)
        self._scorer.train()
        try:
            with reproducible(self.policy.device):
                for update in self._updates(batch):
                    self._make(update, batch.pictures, report)
        finally:
            self._scorer.eval()
        self.policy.updated(step)
        return report.metrics() | self._memory()

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs besides the weights."""
        return {"optimizer": self._optimizer.state_dict(), "checked": self._checked, "nonfinite": self._nonfinite}

    def restore(self, state: Mapping[str, Any], step: int) -> None:
        """Take ``state()`` back, after training step ``step``; the weights must be those of that step already."""
        self._optimizer.load_state_dict(state["optimizer"])
        self._checked, self._nonfinite = state["checked"], state["nonfinite"]
        self.policy.updated(step)

    def _updates(self, batch: Batch) -> list[Update]:
        config = self.config
        if config.algorithm == "sft":
            return supervised_updates(batch.groups, config.batch)
        return policy_updates(batch.groups, config.batch, keep_flat=config.loss.uses_flat_groups)

    def _make(self, update: Update, pictures: Mapping[str, Screenshot], report: StepReport) -> None:
        """One update: gradient, checks, optimiser step."""
        if not update.rows:
            report.skipped_flat += 1
            return
        self._optimizer.zero_grad()
        share = share_of_rank(update.rows, self.accelerator.process_index, self.accelerator.num_processes)
        for rows in micro_batches(share, self.config.batch.max_tokens):
            inputs = self._collate(rows, pictures)
            loss = self._loss(inputs, rows)
            self.accelerator.backward(loss.total)
            report.add(loss, rows, inputs)
        sum_over_processes(self.accelerator, self._parameters)
        norm = float(self.accelerator.clip_grad_norm_(self._parameters, self.config.optim.max_grad_norm))
        report.close_update(norm)
        if self._finite(norm, report):
            self._check_adapters(update, norm)
            self._optimizer.step()
        self._optimizer.zero_grad()

    def _collate(self, rows: Sequence[TokenRow], pictures: Mapping[str, Screenshot]) -> ModelInputs:
        try:
            inputs = self.policy.collate(
                [Row(r.prompt_ids, tuple(pictures[d] for d in r.images), r.token_ids) for r in rows]
            )
        except KeyError as missing:
            row = next(r for r in rows if missing.args[0] in r.images)
            raise TrainError(f"picture {missing.args[0]} of the sampled window is missing", where=row.name) from None
        trained = inputs.answer_ids[inputs.answer_mask].tolist()
        if trained != [t for r in rows for t in r.token_ids]:
            raise TrainError("the trained ids are not the sampled ids", where=f"{rows[0].name} and others")
        return inputs

    def _loss(self, inputs: ModelInputs, rows: Sequence[TokenRow]) -> Loss:
        config, mask = self.config, inputs.answer_mask
        temperature = torch.tensor([r.temperature for r in rows], device=self.policy.device)
        reference = None
        if config.loss.kl_penalty_coef and config.algorithm == "grpo":
            reference = self._reference(inputs, temperature)
        with self.accelerator.autocast():
            scores = self._scorer(inputs, temperature)
        logprobs, entropy = scores.logprobs[mask], scores.entropy[mask]
        weights = self._spread([r.weight for r in rows], rows)
        if config.algorithm == "sft":
            return cross_entropy(logprobs, weights, entropy=entropy)
        behaviour = torch.tensor([p for r in rows for p in r.logprobs or ()], device=self.policy.device)
        tokens = Tokens(behaviour, self._spread([r.advantage for r in rows], rows), weights)
        return policy_loss(logprobs, tokens, config.loss, entropy=entropy, reference=reference)

    def _reference(self, inputs: ModelInputs, temperature: torch.Tensor) -> torch.Tensor:
        """(N,) logprobs of the base: adapter off, dropout off."""
        self._scorer.eval()
        try:
            with self.policy.reference(), torch.no_grad(), self.accelerator.autocast():
                return self._scorer(inputs, temperature).logprobs[inputs.answer_mask]
        finally:
            self._scorer.train()

    def _memory(self) -> dict[str, float]:
        device = self.policy.device
        return {"perf/peak_gib": torch.cuda.max_memory_allocated(device) / 2**30} if device.type == "cuda" else {}

    def _spread(self, values: Sequence[float], rows: Sequence[TokenRow]) -> torch.Tensor:
        """One value a row to one value a trained token, (N,) float32."""
        spread = [v for v, r in zip(values, rows, strict=True) for _ in r.token_ids]
        return torch.tensor(spread, dtype=torch.float32, device=self.policy.device)

    def _finite(self, norm: float, report: StepReport) -> bool:
        """Whether the gradient may be used; training stops if it could not be several times in a row."""
        if math.isfinite(norm):
            self._nonfinite = 0
            return True
        report.skipped_nonfinite += 1
        self._nonfinite += 1
        if self._nonfinite >= _MAX_NONFINITE:
            raise TrainError(
                f"the gradient was not finite {self._nonfinite} times in a row",
                hint="lower learning_rate, or set dtype to float32",
            )
        return False

    def _check_adapters(self, update: Update, norm: float) -> None:
        """Before the very first step, make sure that every adapter learns."""
        if self._checked or norm == 0.0 or not self.policy.has_adapter:
            return
        pictures = any(r.images for r in update.rows)
        dead = dead_adapters(self.policy.model.named_parameters(), pictures=pictures)
        if dead:
            shown = ", ".join(dead[:5]) + (f" and {len(dead) - 5} more" if len(dead) > 5 else "")
            raise TrainError(
                f"{len(dead)} adapted modules get no gradient, so they would never learn: {shown}",
                where=f"first update of {self.policy.name}",
                hint="leave them out of lora_target_modules, or turn gradient_checkpointing off",
            )
        self._checked = pictures


def _checkpoint_activations(model: Any) -> None:
    # transformers renamed the method in 5.2x; the positional argument stayed
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    # the re-entrant variant cuts the graph at the first layer, whose input needs no gradient
    enable({"use_reentrant": False})
