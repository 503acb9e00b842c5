"""The learner: a batch of episodes in, changed weights and metrics out.

One training step makes ``num_substeps`` updates, ``num_epochs`` times. For each update: rows (``batch``), this process's
share of them, micro-batches, forward and backward of each, gradients summed over the processes, clipped as a whole, one
AdamW step. What the updates need to know before the first of them (logprobs of the reference and of the proximal policy,
the critic's values) is seen in a pass of its own (``survey``).
Weights of tokens are fixed for the whole update before its first backward pass, so the gradient is the same however the
rows are split over micro-batches and processes.

A step depends only on the weights, the optimiser's moments, the batch and (seed, step): chance and caches start anew
with each step. That is what makes an interrupted run equal to one that was not.
"""

from __future__ import annotations

import logging
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from cuarl.errors import ConfigError, TrainError
from cuarl.policy.adapters.modalities import Modalities
from cuarl.policy.base import Policy
from cuarl.policy.inputs import Inputs, Row
from cuarl.policy.score import Scorer
from cuarl.train.batch import (
    Batch,
    BatchConfig,
    Update,
    distinct_rows,
    micro_batches,
    noted,
    policy_updates,
    rejection_updates,
    share_of_rank,
    supervised_updates,
)
from cuarl.train.curriculum import Curriculum, CurriculumConfig
from cuarl.train.gradients import check_trained_names, dead_adapters, reproducible, sum_over_processes
from cuarl.train.loss import Loss, LossConfig, Tokens, cross_entropy, policy_loss
from cuarl.train.processes import any_of, join_processes
from cuarl.train.reference import StartWeights
from cuarl.train.rejection import Rejection
from cuarl.train.replay import Replay, ReplayConfig
from cuarl.train.report import StepReport
from cuarl.train.rows import Seen, TokenRow, policy_rows, without
from cuarl.train.schedule import OptimConfig, learning_rate
from cuarl.train.shaping import overlong_cost
from cuarl.train.sharding import Shards, clip_gradients, shard_moments, whole
from cuarl.train.shutdown import StepUndone
from cuarl.train.survey import gather_rows, post_kl
from cuarl.train.value import ValueHead, value_loss
from cuarl.types import Record, Screenshot

logger = logging.getLogger(__name__)

_MAX_NONFINITE = 3
"""Updates in a row without a finite gradient after which training stops."""


_ENGINE_KEPT = 1 << 30
"""Bytes of a sampling engine that are left to it while gradients are computed."""


class LearnerConfig(Record):
    """Everything that decides what a batch does to the weights."""

    objective: Literal["reward", "imitation", "rejection"] = "reward"
    """Policy gradients, or the likelihood of all episodes given, or of the best of them."""
    rejection: Rejection = Rejection()
    compute_post_kl: bool = False
    """Measure after each step how far it moved the policy."""
    replay: ReplayConfig = ReplayConfig()
    curriculum: CurriculumConfig | None = None
    """How tasks are chosen; None: the learner is not asked."""
    batch: BatchConfig = BatchConfig()
    loss: LossConfig = LossConfig()
    reference: Literal["base", "start"] = "base"
    """What a KL penalty is taken to: the base, or the policy as it was when training began."""
    optim: OptimConfig = OptimConfig()
    max_steps: PositiveInt = 32
    """Length of the run in training steps, for the learning rate's schedule."""
    seed: NonNegativeInt = 0
    sharded: bool = False
    """Keep the decoder's layers in shards over the processes while gradients are computed."""
    gradient_checkpointing: bool = False
    """Keep no activations of the layers and compute them again in the backward pass."""
    activation_gib: NonNegativeFloat = 0.0
    """With gradient checkpointing on an accelerator: activations (GiB) that are kept all the same."""

    @property
    def penalised(self) -> bool:
        """Whether the divergence from a reference counts."""
        return self.loss.kl_penalty_coef > 0 or self.batch.kl_coef > 0


class Beside(Protocol):
    """Something that runs beside training and belongs into its checkpoints."""

    def begin_step(self) -> None:
        """A training step begins."""
        ...

    def undo_step(self) -> None:
        """The step is undone: from here on ``state`` is that of its beginning."""
        ...

    def state(self) -> str:
        """All of it, as text."""
        ...


class Learner:
    """Trains one policy in place. Every process of a run has one, and calls the same methods in the same order."""

    def __init__(self, policy: Policy, config: LearnerConfig, accelerator: Accelerator | None = None) -> None:
        self.policy = policy
        self.config = config
        self.accelerator = accelerator or join_processes(policy.device.type)
        keep = int(config.activation_gib * 2**30)
        self._scorer = Scorer(policy, one_pass=config.sharded, keep_bytes=keep).eval()
        if keep and not (config.gradient_checkpointing and self._scorer.unpadded):
            raise ConfigError(
                "activation_gib has no effect here: it is for gradient_checkpointing on a GPU, with plain LoRA or all "
                "weights of a Qwen-VL model, not in shards", hint="leave --activation-gib out",
            )  # fmt: skip
        self._parameters = list(policy.parameters())
        if not self._parameters:
            raise TrainError("nothing of the policy is trained", where=policy.name)
        if policy.has_adapter:
            names = check_trained_names(policy.base.named_parameters())
            kinds = Counter(re.sub(r"\.\d+\.", ".*.", name) for name in names)
            size = sum(p.numel() for p in self._parameters)
            shown = ", ".join(f"{kind} ({count})" for kind, count in kinds.items())
            logger.info("%d values are trained: %s", size, shown)
        for p in self._parameters:
            p.data = broadcast(p.data)
        if config.gradient_checkpointing:
            _checkpoint_activations(policy.base)
        self._start = StartWeights(policy) if config.reference == "start" and config.penalised else None
        self._shards = Shards(policy, self.accelerator) if config.sharded else None
        if self._shards is not None:
            self._parameters = self._shards.parameters
        self._head = self._value_head()
        self._head_parameters = list(self._head.parameters()) if self._head is not None else []
        optim = config.optim
        groups = [{"params": p} for p in (self._parameters, self._head_parameters) if p]
        optimizer = torch.optim.AdamW(
            groups, lr=0.0, betas=(optim.adam_beta1, optim.adam_beta2), eps=optim.adam_eps,
            weight_decay=optim.weight_decay, foreach=False if config.sharded else None,
        )  # fmt: skip
        self._optimizer: Any = self.accelerator.prepare(optimizer)
        self.replay = Replay(config.replay)
        self.curriculum = Curriculum(config.curriculum) if config.curriculum else None
        self.episodes = 0
        """How many episodes were learnt from, in the whole run."""
        self.beside: Beside | None = None
        self.left_beside: str | None = None
        """Its state in the checkpoint that was restored, if there was one."""
        self._checked = False
        self._nonfinite = 0
        self._warming = self._changed = False
        self._before: dict[str, Any] = {}
        self.overdue: Callable[[], bool] = lambda: False
        """Asked while a step has changed no weight yet: whether it is to be undone rather than finished."""

    def begin_step(self, step: int) -> None:
        """Start training step ``step``, before its episodes are collected: chance and caches start anew."""
        self._before = {} if self.curriculum is None else {"curriculum": self.curriculum.state()}
        if self.beside is not None:
            self.beside.begin_step()
        torch.manual_seed(random.Random(f"{self.config.seed}/{step}").getrandbits(63))
        # Encoded pictures may differ in the last bit with the pictures they were encoded beside.
        self.policy.forget_pictures()

    def undo_step(self) -> None:
        """Be as before ``begin_step``; its step has changed no weight yet."""
        if self.curriculum is not None and self._before:
            self.curriculum.restore(self._before["curriculum"])
        if self.beside is not None:
            self.beside.undo_step()

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn from ``batch``, the whole batch on every process; returns the metrics of the step.

        Raises StepUndone if it became ``overdue`` before the first weight was changed: all is then as before.
        Raises TrainError for turns that can't be trained on, for adapters that get no gradient in the first update,
        and after several gradients in a row that are not finite.
        """
        config, critic = self.config, self.config.batch.critic
        rate = learning_rate(config.optim, step, config.max_steps)
        self._warming = self._head is not None and step <= critic.warmup_steps
        rates = [0.0 if self._warming else rate, critic.learning_rate]
        for group, value in zip(self._optimizer.param_groups, rates, strict=False):
            group["lr"] = value
        report = StepReport(rates[0])
        batch = replace(batch, groups=without(batch.groups, self.policy.special.unsayable, self.policy.decode))
        learnt, used = self.replay.filled(batch, step) if config.replay.per_task else (batch, 0)
        self._changed, nonfinite = False, self._nonfinite
        # keys and values would lie beside the activations; graphs are captured anew with the next samples
        self.policy.release_memory(_ENGINE_KEPT)
        with reproducible(self.policy.device):
            updates = self._updates(learnt)
            self._scorer.train()
            try:
                for update in updates:
                    self._make(update, learnt.pictures, report)
            except StepUndone:
                self._optimizer.zero_grad()
                self._nonfinite = nonfinite
                raise
            finally:
                self._scorer.eval()
            after = self._post_kl(updates, learnt.pictures)
        self.policy.updated(step)
        self.episodes += sum(len(g.trajectories) for g in batch.collected)
        return report.metrics() | after | self._remembered(batch, step, used) | self._memory()

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs besides the weights."""
        state = {
            "optimizer": whole(self._optimizer.state_dict()),
            "checked": self._checked,
            "nonfinite": self._nonfinite,
        }
        state |= {"episodes": self.episodes, "replay": self.replay.state()}
        if self._head is not None:
            state["value_head"] = self._head.state_dict()
        if self._start is not None:
            state["start"] = self._start.state()
        if self.curriculum is not None:
            state["curriculum"] = self.curriculum.state()
        if self.beside is not None:
            state["beside"] = self.beside.state()
        return state

    def restore(self, state: Mapping[str, Any], step: int) -> None:
        """Take ``state()`` back, after training step ``step``; the weights must be those of that step already."""
        self._optimizer.load_state_dict(state["optimizer"])
        if self._shards is not None:
            shard_moments(self._optimizer.optimizer)
        if self._head is not None:
            self._head.load_state_dict(state["value_head"])
        if self._start is not None:
            self._start.restore(state["start"])
        if self.curriculum is not None:
            self.curriculum.restore(state["curriculum"])
        self.replay.restore(state["replay"])
        self.episodes = state["episodes"]
        self.left_beside = state.get("beside")
        self._checked, self._nonfinite = state["checked"], state["nonfinite"]
        self.policy.updated(step)

    def whole_weights(self) -> dict[str, torch.Tensor] | None:
        """All weights by name, where layers are in shards and could not be saved otherwise."""
        return self._shards.weights() if self._shards is not None else None

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> bool:
        """Take trained weights by name into the shards; False if there are none, so that the policy itself may take them."""
        if self._shards is not None:
            self._shards.load(weights)
        return self._shards is not None

    def _value_head(self) -> ValueHead | None:
        batch = self.config.batch
        if self.config.objective != "reward" or batch.baseline != "critic":
            return None
        head = ValueHead(self.policy.width, batch.critic)
        head.to(self.policy.device)
        for p in head.parameters():
            p.data = broadcast(p.data)
        return head

    def _remembered(self, batch: Batch, step: int, used: int) -> dict[str, float]:
        """Remember the batch, of which ``used`` groups had a success of an earlier one; metrics of that."""
        found: dict[str, float] = {}
        shaping = self.config.batch.shaping
        if shaping.overlong_buffer:
            costs = [overlong_cost(t, shaping) for g in batch.collected for t in g.trajectories if t.reward is not None]
            found |= {"reward/overlong_cost": math.fsum(costs) / len(costs)} if costs else {}
        if self.curriculum is not None:
            self.curriculum.observe(batch.collected)
            found |= self.curriculum.metrics()
        if not self.config.replay.per_task:
            return found
        self.replay.remember(batch, step)
        return found | {"replay/used": float(used), "replay/size": float(len(self.replay))}

    def _updates(self, batch: Batch) -> list[Update]:
        config = self.config
        if config.objective == "imitation":
            return supervised_updates(batch.groups, config.batch)
        if config.objective == "rejection":
            return rejection_updates(batch.groups, config.batch, config.rejection)
        seen = {}
        if config.batch.looks_ahead:
            rows = policy_rows(batch.groups)
            seen = {r.place: s for r, s in zip(rows, self._survey(rows, batch.pictures), strict=True)}
        updates = policy_updates(batch.groups, config.batch, keep_flat=config.loss.uses_flat_groups, seen=seen)
        rows = distinct_rows(updates)
        if config.loss.decoupled:
            found = self._logprobs(rows, batch.pictures)
            updates = noted(updates, rows, found, lambda row, logprobs: replace(row, proximal=logprobs))
        if config.loss.kl_penalty_coef:
            if config.batch.kl_coef:
                found = [seen[r.place].reference for r in rows]
            else:
                found = self._logprobs(rows, batch.pictures, of_reference=True)
            updates = noted(updates, rows, found, lambda row, logprobs: replace(row, reference=logprobs))
        return updates

    def _survey(self, rows: Sequence[TokenRow], pictures: Mapping[str, Screenshot]) -> list[Seen]:
        """What the reference and the critic say of each row before the first update, on every process."""
        wants_base, head = self.config.batch.kl_coef > 0, self._head

        def see(part: Sequence[TokenRow]) -> list[Seen]:
            inputs = self._collate(part, pictures)
            temperature = self._temperatures(part)
            base = self._reference(inputs, temperature) if wants_base else None
            values = None
            if head is not None:
                with self.accelerator.autocast():
                    hidden = self._scorer(inputs, temperature, with_hidden=True).hidden
                assert hidden is not None, "asked for"
                values = head(hidden)
            return [Seen(*both) for both in zip(_by_row(base, part), _by_row(values, part), strict=True)]

        return gather_rows(self.accelerator, rows, self.config.batch, see)

    def _logprobs(
        self, rows: Sequence[TokenRow], pictures: Mapping[str, Screenshot], *, of_reference: bool = False
    ) -> list[tuple[float, ...]]:
        """Logprobs of each row under the policy as it is, or the reference, without gradient, on every process."""

        def score(part: Sequence[TokenRow]) -> list[tuple[float, ...]]:
            inputs, temperatures = self._collate(part, pictures), self._temperatures(part)
            if of_reference:
                return _by_row(self._reference(inputs, temperatures), part)
            with self.accelerator.autocast():
                logprobs = self._scorer(inputs, temperatures).logprobs[inputs.answer_mask]
            return _by_row(logprobs, part)

        return gather_rows(self.accelerator, rows, self.config.batch, score)

    def _post_kl(self, updates: Sequence[Update], pictures: Mapping[str, Screenshot]) -> dict[str, float]:
        rows = distinct_rows(updates)
        if not self.config.compute_post_kl or not rows:
            return {}
        return post_kl(rows, self._logprobs(rows, pictures), self.config.loss.log_ratio_limit)

    def _make(self, update: Update, pictures: Mapping[str, Screenshot], report: StepReport) -> None:
        """One update: gradient, checks, optimiser step."""
        if not update.rows:
            report.skipped_flat += 1
            return
        with self._shards.apart() if self._shards is not None else nullcontext():
            self._make_apart(update, pictures, report)

    def _make_apart(self, update: Update, pictures: Mapping[str, Screenshot], report: StepReport) -> None:
        self._optimizer.zero_grad()
        mine, parts = self.accelerator.process_index, self._micro_batches(update)
        giving_up = False
        for rows in parts[mine]:
            # shards are gathered anew for each part, so that all processes must go on together
            giving_up = not self._changed and self._shards is None and self.overdue()
            if giving_up:
                break
            inputs = self._collate(rows, pictures)
            loss = self._loss(inputs, rows)
            self.accelerator.backward(loss.total)
            report.add(loss, rows, inputs)
        if not self._changed and self._shards is None and any_of(giving_up):
            raise StepUndone
        if self._shards is not None:
            for _ in range(max(map(len, parts)) - len(parts[mine])):
                self._stand_by(update, pictures)
        sum_over_processes(self.accelerator, [*self._parameters, *self._head_parameters])
        if self._warming:
            for p in self._parameters:
                p.grad = None
        limit = self.config.optim.max_grad_norm
        clip = self.accelerator.clip_grad_norm_ if self._shards is None else partial(clip_gradients, self.accelerator)
        norm = float(clip(self._parameters, limit))
        if self._head_parameters:
            # by itself, or the larger of the two gradients would scale the other down
            self.accelerator.clip_grad_norm_(self._head_parameters, limit)
        report.close_update(norm)
        if self._finite(norm, report):
            self._check_adapters(update, norm)
            self._optimizer.step()
            self._changed = True
        self._optimizer.zero_grad()

    def _micro_batches(self, update: Update) -> list[list[list[TokenRow]]]:
        """Of every process."""
        world, limit, pack = self.accelerator.num_processes, self.config.batch.max_tokens, self.config.batch.pack
        shares = [share_of_rank(update.rows, rank, world, pack=pack) for rank in range(world)]
        return [micro_batches(share, limit, pack=pack) for share in shares]

    def _stand_by(self, update: Update, pictures: Mapping[str, Screenshot]) -> None:
        """Compute a row without effect, so that the other processes' layers are gathered and their gradients summed."""
        shortest = min(update.rows, key=lambda r: len(r.prompt_ids) + len(r.token_ids))
        scores = self._scorer(self._collate([shortest], pictures), self._temperatures([shortest]))
        self.accelerator.backward(0.0 * scores.logprobs.sum())

    def _collate(self, rows: Sequence[TokenRow], pictures: Mapping[str, Screenshot]) -> Inputs:
        try:
            inputs = self.policy.collate(
                [Row(r.prompt_ids, tuple(pictures[d] for d in r.images), r.token_ids) for r in rows],
                pack=self.config.batch.pack,
            )
        except KeyError as missing:
            row = next(r for r in rows if missing.args[0] in r.images)
            raise TrainError(f"picture {missing.args[0]} of the sampled window is missing", where=row.name) from None
        trained = inputs.answer_ids[inputs.answer_mask].tolist()
        if trained != [t for r in rows for t in r.token_ids]:
            raise TrainError("the trained ids are not the sampled ids", where=f"{rows[0].name} and others")
        return inputs

    def _loss(self, inputs: Inputs, rows: Sequence[TokenRow]) -> Loss:
        config, mask = self.config, inputs.answer_mask
        with self.accelerator.autocast():
            scores = self._scorer(inputs, self._temperatures(rows), with_hidden=self._head is not None)
        logprobs, entropy = scores.logprobs[mask], scores.entropy[mask]
        weights = self._spread([r.weight for r in rows], rows)
        if config.objective != "reward":
            return cross_entropy(logprobs, weights, entropy=entropy)
        tokens = Tokens(
            behaviour=self._flat([r.logprobs or () for r in rows]),
            advantages=self._flat([r.advantages for r in rows]),
            weights=weights,
            turns=self._spread(range(len(rows)), rows).long(),
            proximal=self._flat([r.proximal or () for r in rows]) if config.loss.decoupled else None,
        )
        reference = self._flat([r.reference or () for r in rows]) if config.loss.kl_penalty_coef else None
        loss = policy_loss(logprobs, tokens, config.loss, entropy=entropy, reference=reference)
        return self._with_critic(loss, scores.hidden, rows) if scores.hidden is not None else loss

    def _with_critic(self, loss: Loss, hidden: torch.Tensor, rows: Sequence[TokenRow]) -> Loss:
        """The policy's loss and the critic's: the head's own, whose share in the policy's layers is ``coef``."""
        assert self._head is not None, "there are hidden states for it"
        config = self.config.batch.critic
        firsts: list[int] = []
        at = 0
        for r in rows:
            firsts += range(at, at + len(r.values))
            at += len(r.token_ids)
        found = value_loss(
            self._head(hidden[firsts]), self._flat([r.values for r in rows]), self._flat([r.returns for r in rows]),
            torch.tensor([r.value_weight for r in rows for _ in r.values], device=hidden.device), config.clip,
        )  # fmt: skip
        coef = config.coef if config.trunk == "shared" else 1.0
        return Loss(loss.total + coef * found.total, loss.sums | found.sums)

    def _reference(self, inputs: Inputs, temperature: torch.Tensor) -> torch.Tensor:
        """(N,) logprobs of the base, adapter off, or of the policy that training began with; dropout off."""
        training = self._scorer.training
        self._scorer.eval()
        reference = self.policy.reference() if self._start is None else self._start.put_into(self.policy)
        try:
            with reference, torch.no_grad(), self.accelerator.autocast():
                return self._scorer(inputs, temperature).logprobs[inputs.answer_mask]
        finally:
            self._scorer.train(training)

    def _memory(self) -> dict[str, float]:
        device = self.policy.device
        return {"perf/peak_gib": torch.cuda.max_memory_allocated(device) / 2**30} if device.type == "cuda" else {}

    def _temperatures(self, rows: Sequence[TokenRow]) -> torch.Tensor:
        """(B,) float32."""
        return torch.tensor([r.temperature for r in rows], device=self.policy.device)

    def _flat(self, values: Sequence[Sequence[float]]) -> torch.Tensor:
        """The values of all rows behind each other, (N,) float32."""
        return torch.tensor([v for row in values for v in row], dtype=torch.float32, device=self.policy.device)

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
        of_vision = Modalities(self.policy.base).vision
        dead = dead_adapters(self.policy.base.named_parameters(), pictures=pictures, of_vision=of_vision)
        if dead:
            shown = ", ".join(dead[:5]) + (f" and {len(dead) - 5} more" if len(dead) > 5 else "")
            raise TrainError(
                f"{len(dead)} adapted modules get no gradient, so they would never learn: {shown}",
                where=f"first update of {self.policy.name}",
                hint="leave them out of lora_target_modules, or turn gradient_checkpointing off",
            )
        self._checked = pictures


def _by_row(flat: torch.Tensor | None, rows: Sequence[TokenRow]) -> list[tuple[float, ...]]:
    """(N,) values of the rows' tokens to one tuple a row; empty tuples for None."""
    if flat is None:
        return [() for _ in rows]
    parts = flat.float().split([len(r.token_ids) for r in rows])
    return [tuple(part.tolist()) for part in parts]


def _checkpoint_activations(model: Any) -> None:
    # transformers renamed the method in 5.2x; the positional argument stayed
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    # the re-entrant variant cuts the graph at the first layer, whose input needs no gradient
    enable({"use_reentrant": False})
