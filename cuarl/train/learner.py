"""The learner: a batch of episodes in, changed weights and metrics out.

One training step makes ``num_substeps`` updates, ``num_epochs`` times. A batch becomes rows, with their advantages and
weights, in ``batch.policy_updates``; the loss of rows is ``objective.Objective``'s; here are the gradients of a whole
update: accumulated over micro-batches, summed over the processes, clipped as a whole, and one AdamW step. Weights of
tokens are fixed for the whole update before its first backward pass, so the gradient is the same however the rows are
split over micro-batches and processes.

A step depends only on the weights, the optimiser's moments, the batch and (seed, step): chance and caches start anew
with each step. That is what makes an interrupted run equal to one that was not.
"""

from __future__ import annotations

import logging
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, gather_object

from cuarl.errors import TrainError
from cuarl.policy.adapters.modalities import Modalities
from cuarl.policy.base import Policy
from cuarl.policy.master import Master
from cuarl.policy.work import Work, total
from cuarl.train.backward import Backward
from cuarl.train.batch import (
    Batch,
    Update,
    micro_batches,
    policy_updates,
    rejection_updates,
    share_of_rank,
    supervised_updates,
)
from cuarl.train.config import LearnerConfig
from cuarl.train.curriculum import Curriculum
from cuarl.train.entropy import EntropyFloor
from cuarl.train.gradients import check_trained_names, dead_adapters, reproducible, sum_over_processes
from cuarl.train.hints import Hints
from cuarl.train.metrics import sampling_metrics
from cuarl.train.objective import Objective, Pictures
from cuarl.train.processes import any_of, join_processes
from cuarl.train.replay import Replay
from cuarl.train.report import StepReport, post_kl
from cuarl.train.rows import TokenRow, without
from cuarl.train.schedule import learning_rate
from cuarl.train.shaping import overlong_cost
from cuarl.train.sharding import Shards, clip_gradients, shard_moments, whole
from cuarl.train.shutdown import StepUndone
from cuarl.trajectory import Group

logger = logging.getLogger(__name__)

_MAX_NONFINITE = 3
"""Updates in a row without a finite gradient after which training stops."""


_ENGINE_KEPT = 1 << 30
"""Bytes of a sampling engine that are left to it while gradients are computed."""


class CheckpointedStream(Protocol):
    """A stream of groups that is collected while the learner trains, so that its state belongs into the checkpoints."""

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
        self._parameters = list(policy.parameters())
        if not self._parameters:
            raise TrainError("nothing of the policy is trained", where=policy.name)
        if policy.has_adapter:
            _say_what_is_trained(policy)
        for p in self._parameters:
            p.data = broadcast(p.data)
        # with the weights that all processes begin with, and while what the layers are is still to be seen
        self._objective = Objective(policy, config, self.accelerator)
        if config.gradient_checkpointing:
            _checkpoint_activations(policy.base)
        self._shards = Shards(policy, self.accelerator) if config.sharded else None
        used = self._parameters if self._shards is None else self._shards.parameters
        self._master = Master(used)
        self._parameters = self._master.parameters
        head = self._objective.head
        self._head_parameters = list(head.parameters()) if head is not None else []
        self._backward = Backward(
            policy,
            self._objective,
            self.accelerator,
            config,
            [*used, *self._head_parameters],
            self._master.take_gradients,
        )
        self._optimizer = self._make_optimizer()
        self.replay = Replay(config.replay)
        self.curriculum = Curriculum(config.curriculum) if config.curriculum else None
        self.hints = Hints(config.hint_turns) if config.hint_turns else None
        self.entropy_floor = EntropyFloor(config.entropy_floor) if config.entropy_floor else None
        self.episodes = 0
        """How many episodes were learnt from, in the whole run."""
        self.stream: CheckpointedStream | None = None
        self.restored_stream: str | None = None
        """The stream's state in the checkpoint that was restored, if there was one."""
        self._checked = False
        self._nonfinite = 0
        self._warming = self._changed = False
        self._before: dict[str, Any] = {}
        self.overdue: Callable[[], bool] = lambda: False
        """Asked while a step has changed no weight yet: whether it is to be undone rather than finished."""

    def _make_optimizer(self) -> Any:
        optim = self.config.optim
        groups = [{"params": p} for p in (self._parameters, self._head_parameters) if p]
        optimizer = torch.optim.AdamW(
            groups,
            lr=0.0,
            betas=(optim.adam_beta1, optim.adam_beta2),
            eps=optim.adam_eps,
            weight_decay=optim.weight_decay,
            foreach=False if self.config.sharded else None,
        )
        return self.accelerator.prepare(optimizer)

    def begin_step(self, step: int) -> None:
        """Start training step ``step``, before its episodes are collected: chance, caches and counts start anew."""
        self._before = {} if self.curriculum is None else {"curriculum": self.curriculum.state()}
        if self.stream is not None:
            self.stream.begin_step()
        torch.manual_seed(random.Random(f"{self.config.seed}/{step}").getrandbits(63))
        # encoded pictures may differ in the last bit with the pictures they were encoded beside
        self.policy.forget_pictures()
        self.policy.take_work()

    def undo_step(self) -> None:
        """Be as before ``begin_step``; its step has changed no weight yet."""
        if self.curriculum is not None and self._before:
            self.curriculum.restore(self._before["curriculum"])
        if self.stream is not None:
            self.stream.undo_step()

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn from ``batch``, the whole batch on every process; returns the metrics of the step.

        Raises StepUndone if it became ``overdue`` before the first weight was changed: all is then as before.
        Raises TrainError for turns that can't be trained on, for adapters that get no gradient in the first update,
        and after several gradients in a row that are not finite.
        """
        # what processes tell each other goes through the current GPU, and a thread begins with the first
        with self.policy.on_device():
            return self._learn(batch, step)

    # --- one update ------------------------------------------------------------------------------------------------

    def _learn(self, batch: Batch, step: int) -> dict[str, float]:
        report, sampled = StepReport(self._set_learning_rates(step)), self.policy.take_work()
        batch = replace(batch, groups=self._sayable(batch.groups))
        learnt = replace(batch, groups=self._sayable(batch.learnt)) if batch.led else batch
        learnt, replayed = self.replay.filled(learnt, step) if self.config.replay.per_task else (learnt, 0)
        if self.entropy_floor is not None:
            self._objective.entropy_bonus = self.entropy_floor.coef
        # keys and values would lie beside the activations; graphs are captured anew with the next samples
        self.policy.release_memory(_ENGINE_KEPT)
        with reproducible(self.policy.device):
            share = self.config.imitation_coef / max(1, len(batch.collected))
            updates = self._updates(learnt, share)  # rows of tokens a_t with log μ(a_t), A_t, w_t, and what l_t needs
            report.skipped_flat = updates.count(())
            with self._training():
                for update in filter(None, updates):
                    with self._apart():
                        self._add_gradients(update, learnt.pictures, report)  # of Σ w_t l_t
                        self._step(update, report)  # AdamW
            after = self._post_kl(updates, learnt.pictures)
        self.policy.updated(step)
        self.policy.recall_pictures()
        self.episodes += sum(len(g.trajectories) for g in batch.collected)
        work = self._work(sampled)
        found = report.metrics()
        if self.entropy_floor is not None:
            found |= self.entropy_floor.observe(found)
        return found | after | self._remembered(batch, step, replayed) | self._memory() | work

    def _sayable(self, groups: Sequence[Group]) -> tuple[Group, ...]:
        return without(groups, self.policy.special.unsayable, self.policy.decode)

    def _updates(self, batch: Batch, share: float) -> list[Update]:
        """The batch's updates; each demonstration beside what is learnt from rewards has a ``share`` in the loss."""
        config = self.config
        if config.objective == "imitation":
            imitated = (*batch.groups, *batch.earlier)
            return supervised_updates(imitated, config.batch, batch.importance, batch.rehearsal)
        if config.objective == "rejection":
            return rejection_updates(batch.groups, config.batch, config.rejection)
        return policy_updates(
            batch.groups,
            config.batch,
            keep_flat=self._objective.loss_config.uses_flat_groups,
            precompute=lambda rows: self._objective.precompute(rows, batch.pictures),
            demonstrated=list(batch.demonstrated.values()),
            share=share,
        )

    @contextmanager
    def _training(self) -> Iterator[None]:
        """Inside, dropout is on; where the step is undone, so is what it has left so far."""
        self._changed, nonfinite = False, self._nonfinite
        self._objective.scorer.train()
        try:
            yield
        except StepUndone:
            self._optimizer.zero_grad()
            self._nonfinite = nonfinite
            raise
        finally:
            self._objective.scorer.eval()

    def _apart(self) -> AbstractContextManager[None]:
        """Inside, layers are in shards, if they are to be at all."""
        return self._shards.apart() if self._shards is not None else nullcontext()

    def _add_gradients(self, update: Update, pictures: Pictures, report: StepReport) -> None:
        """The gradient of ``Σ w_t l_t``, over all processes. Raises StepUndone, on every process at once."""
        self._optimizer.zero_grad()
        mine, parts = self.accelerator.process_index, self._micro_batches(update)
        done = 0
        for rows, (loss, inputs) in self._backward.run(parts[mine], pictures, self._given_up):
            report.add(loss, rows, inputs, unpadded=self._objective.scorer.unpadded)
            done += len(rows)
        giving_up = done < sum(map(len, parts[mine]))
        if not self._changed and self._shards is None and any_of(giving_up):
            raise StepUndone
        if self._shards is not None:
            for _ in range(max(map(len, parts)) - len(parts[mine])):
                self.accelerator.backward(self._objective.stand_by(update, pictures))
                self._master.take_gradients()
        sum_over_processes(self.accelerator, [*self._parameters, *self._head_parameters])

    def _given_up(self) -> bool:
        """Shards are gathered anew for each part, so that all processes must go on together."""
        return not self._changed and self._shards is None and self.overdue()

    def _step(self, update: Update, report: StepReport) -> None:
        """Clip and check the gradient, and take the optimiser's step if it may be taken."""
        norm = self._clip()
        report.close_update(norm)
        if self._finite(norm, report):
            self._check_adapters(update, norm)
            self._optimizer.step()
            self._master.write()
            self._changed = True
        self._optimizer.zero_grad()

    def _micro_batches(self, update: Update) -> list[list[list[TokenRow]]]:
        """Of every process."""
        world, limit, pack = self.accelerator.num_processes, self.config.batch.max_tokens, self.config.batch.pack
        shares = [share_of_rank(update, rank, world, pack=pack) for rank in range(world)]
        return [micro_batches(share, limit, pack=pack) for share in shares]

    def _clip(self) -> float:
        """Scale the gradients down to ``max_grad_norm``; returns the norm that the policy's had before."""
        if self._warming:
            # in its first steps only the critic learns
            for p in self._parameters:
                p.grad = None
        limit = self.config.optim.max_grad_norm
        clip = self.accelerator.clip_grad_norm_ if self._shards is None else partial(clip_gradients, self.accelerator)
        norm = float(clip(self._parameters, limit))
        if self._head_parameters:
            # by itself, or the larger of the two gradients would scale the other down
            self.accelerator.clip_grad_norm_(self._head_parameters, limit)
        return norm

    def _set_learning_rates(self, step: int) -> float:
        """Those of training step ``step``; returns the policy's."""
        critic = self.config.batch.critic
        self._warming = self._objective.head is not None and step <= critic.warmup_steps
        rate = 0.0 if self._warming else learning_rate(self.config.optim, step, self.config.max_steps)
        for group, value in zip(self._optimizer.param_groups, (rate, critic.learning_rate), strict=False):
            group["lr"] = value
        return rate

    def _post_kl(self, updates: Sequence[Update], pictures: Pictures) -> dict[str, float]:
        """How far the step moved the policy."""
        # every epoch has the same rows
        rows = list({row.place: row for update in updates for row in update if not row.imitated}.values())
        if not self.config.compute_post_kl or not rows:
            return {}
        return post_kl(rows, self._objective.logprobs(rows, pictures), self.config.loss.log_ratio_limit)

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
        pictures = any(row.images for row in update)
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

    def _work(self, sampled: Work | None) -> dict[str, float]:
        """What it took to sample from the policy that is trained, and to train it, over all processes."""
        done = gather_object([(sampled, self.policy.take_work())])
        sampling, training = (total(works) for works in zip(*done, strict=True))
        found = sampling_metrics(sampling)
        return found if training is None else found | {"train/pictures": float(training.pictures)}

    def _memory(self) -> dict[str, float]:
        device = self.policy.device
        return {"perf/peak_gib": torch.cuda.max_memory_allocated(device) / 2**30} if device.type == "cuda" else {}

    # --- what is remembered ----------------------------------------------------------------------------------------

    def _remembered(self, batch: Batch, step: int, replayed: int) -> dict[str, float]:
        """Remember the batch, of which ``replayed`` groups had a success of an earlier one; metrics of that."""
        found: dict[str, float] = {}
        shaping = self.config.batch.shaping
        if shaping.overlong_buffer:
            costs = [overlong_cost(t, shaping) for g in batch.collected for t in g.trajectories if t.reward is not None]
            found |= {"reward/overlong_cost": math.fsum(costs) / len(costs)} if costs else {}
        if self.curriculum is not None:
            self.curriculum.observe(batch.collected)
            found |= self.curriculum.metrics()
        if self.hints is not None:
            found |= self.hints.observe(list(batch.led.values()))
        if self.config.imitation_coef:
            found["imitation/groups"] = float(len(batch.demonstrated))
        if not self.config.replay.per_task:
            return found
        self.replay.remember(batch, step)
        return found | {"replay/used": float(replayed), "replay/size": float(len(self.replay))}

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs besides the weights."""
        state = {
            "optimizer": whole(self._optimizer.state_dict()),
            "checked": self._checked,
            "nonfinite": self._nonfinite,
        }
        state |= {"episodes": self.episodes, "replay": self.replay.state()}
        if master := self._master.state():
            state["master"] = master
        if self._objective.head is not None:
            state["value_head"] = self._objective.head.state_dict()
        if self._objective.start is not None:
            state["start"] = self._objective.start.state()
        if self.curriculum is not None:
            state["curriculum"] = self.curriculum.state()
        if self.hints is not None:
            state["hints"] = self.hints.state()
        if self.entropy_floor is not None:
            state["entropy_floor"] = self.entropy_floor.state()
        if self.stream is not None:
            state["stream"] = self.stream.state()
        return state

    def restore(self, state: Mapping[str, Any], step: int) -> None:
        """Take ``state()`` back, after training step ``step``; the weights must be those of that step already."""
        self._optimizer.load_state_dict(state["optimizer"])
        if self._shards is not None:
            shard_moments(self._optimizer.optimizer)
        self._master.restore(state.get("master"))
        if self._objective.head is not None:
            self._objective.head.load_state_dict(state["value_head"])
        if self._objective.start is not None:
            self._objective.start.restore(state["start"])
        if self.curriculum is not None:
            self.curriculum.restore(state["curriculum"])
        if self.hints is not None:
            self.hints.restore(state["hints"])
        if self.entropy_floor is not None:
            self.entropy_floor.restore(state["entropy_floor"])
        self.replay.restore(state["replay"])
        self.episodes = state["episodes"]
        self.restored_stream = state.get("stream")
        self._checked, self._nonfinite = state["checked"], state["nonfinite"]
        self.policy.updated(step)

    def whole_weights(self) -> dict[str, torch.Tensor] | None:
        """All weights by name, where layers are in shards and could not be saved otherwise."""
        return self._shards.weights() if self._shards is not None else None

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> bool:
        """Take trained weights by name into the shards; False if there are none, so that the policy may take them."""
        if self._shards is not None:
            self._shards.load(weights)
        return self._shards is not None


def _say_what_is_trained(policy: Policy) -> None:
    """Log it. Raises TrainError if that is not the adapter, whole and alone."""
    names = check_trained_names(policy.base.named_parameters())
    kinds = Counter(re.sub(r"\.\d+\.", ".*.", name) for name in names)
    size = sum(p.numel() for p in policy.parameters())
    shown = ", ".join(f"{kind} ({count})" for kind, count in kinds.items())
    logger.info("%d values are trained: %s", size, shown)


def _checkpoint_activations(model: Any) -> None:
    # transformers renamed the method in 5.2x; the positional argument stayed
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    # the re-entrant variant cuts the graph at the first layer, whose input needs no gradient
    enable({"use_reentrant": False})
