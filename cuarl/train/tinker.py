"""Training by the Tinker service: batches as datums, losses as sums.

The service's losses are sums over tokens and datums without a mask (a position is idle because its advantage is 0), and
its clip bounds are bounds of the ratio itself. Ours are weighted sums with distances from 1. So with w the weight of a
token (``batch.token_weights``) and A its advantage, what is sent is w·A, and 1 − clip_low and 1 + clip_high: for w > 0,
min(r w A, clip(r) w A) = w min(r A, clip(r) A). The gradient and the learning rate are then those of local training.

A turn of prompt p_1 … p_n and answer a_1 … a_m becomes one datum: inputs p_1 … p_n a_1 … a_(m−1), targets shifted by
one. Image positions have target 0 and advantage 0.

The losses have no term for a divergence from a reference. So it counts against the advantages (``estimation``), from
the log-probabilities that the service gives of what was sampled under the reference's weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import PositiveFloat

from cuarl.errors import TrainError
from cuarl.policy.prompt import Renderer
from cuarl.policy.remote.tinker import TinkerSampler, mapped, model_input, sdk
from cuarl.train.batch import Batch, BatchConfig, Update, policy_updates, supervised_updates
from cuarl.train.report import post_kl
from cuarl.train.rows import TokenRow, without
from cuarl.train.tinker_scoring import LOG_RATIO_LIMIT, divergences, logprobs_of
from cuarl.types import Record, Screenshot

if TYPE_CHECKING:
    from cuarl.train.learner import CheckpointedStream


class TinkerConfig(Record):
    """How the service has to learn."""

    algorithm: Literal["grpo", "sft"] = "grpo"
    loss: Literal["ppo", "importance_sampling", "cispo"] = "ppo"
    batch: BatchConfig = BatchConfig()
    clip_low: float = 0.2
    clip_high: float = 0.2
    learning_rate: PositiveFloat = 2e-4
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_eps: PositiveFloat = 1e-8
    weight_decay: float = 0.0
    max_grad_norm: PositiveFloat = 1.0
    compute_post_kl: bool = False
    """Measure after each step how far it moved the policy; costs one forward pass there."""


class TinkerLearner:
    """What ``train.loop`` needs of a learner, by a ``TrainingClient``. ``sampler`` gets new weights after each step.

    ``reference`` is a ``SamplingClient`` of the weights that a divergence is taken from, where one counts.
    """

    def __init__(
        self, client: Any, sampler: TinkerSampler, renderer: Renderer, config: TinkerConfig, reference: Any = None
    ) -> None:
        self.client, self.sampler, self._renderer, self.config = client, sampler, renderer, config
        self._reference = reference
        self.stream: CheckpointedStream | None = None
        self.restored_stream: str | None = None
        """As a ``learner.Learner`` has them."""

    def begin_step(self, step: int) -> None:
        """Nothing but a stream is kept from step to step here."""
        if self.stream is not None:
            self.stream.begin_step()

    def undo_step(self) -> None:
        """Be as before ``begin_step``."""
        if self.stream is not None:
            self.stream.undo_step()

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn from ``batch``, and sample from the result from now on; blocks.

        Raises TrainError for turns that can't be trained on and for what the service refuses or loses. Gradients may
        then have been applied or not, so the way on is to resume from the last checkpoint, never to send again.
        """
        losses: list[float] = []
        learnt: list[TokenRow] = []
        now: list[Sequence[float]] = []
        updates = self._updates(batch, step)
        for update in filter(None, updates):
            with mapped(_Lost, f"training step {step}"):
                data = [self._datum(row, batch.pictures) for row in update]
                # both are on their way before either is waited for: the service works in cycles
                gradients = self.client.forward_backward(data, self._loss_name, self._loss_config)
                stepped = self.client.optim_step(self._adam())
                output = gradients.result()
                stepped.result()
            losses.append(float(output.metrics.get("loss:sum", 0.0)))
            now += self._now(update, output)
            learnt += update
        self.refresh(step)
        metrics = {"optim/lr": self.config.learning_rate, "optim/updates": float(len(losses))}
        tokens = sum(len(row.token_ids) for row in learnt)
        metrics |= {
            "optim/skipped_flat": float(updates.count(())),
            "train/rows": float(len(learnt)),
            "train/tokens": float(tokens),
        }
        if losses:
            metrics["policy/loss"] = sum(losses) / len(losses)
        if len(now) == len(learnt):
            metrics |= divergences(learnt, now)
        return metrics | self._post_kl(learnt, batch.pictures, step)

    def refresh(self, version: int) -> None:
        """Sample from the weights as they are."""
        with mapped(_Lost, "publishing the weights for sampling"):
            self.sampler.use(_done(self.client.save_weights_and_get_sampling_client()), version)

    # --- conversions -----------------------------------------------------------------------------------------------

    def _updates(self, batch: Batch, step: int) -> list[Update]:
        groups = without(batch.groups, self._renderer.special.unsayable, self._renderer.decode)
        if self.config.algorithm == "sft":
            return supervised_updates(groups, self.config.batch, batch.importance)

        def with_reference(rows: Sequence[TokenRow]) -> list[TokenRow]:
            if self._reference is None:
                return list(rows)
            with mapped(_Lost, f"asking the reference in training step {step}"):
                told = logprobs_of(self._reference, rows, batch.pictures, self._renderer)
            return [replace(row, reference=logprobs) for row, logprobs in zip(rows, told, strict=True)]

        return policy_updates(groups, self.config.batch, precompute=with_reference)

    @property
    def _loss_name(self) -> str:
        return "cross_entropy" if self.config.algorithm == "sft" else self.config.loss

    @property
    def _loss_config(self) -> dict[str, float] | None:
        if self.config.algorithm == "sft" or self.config.loss == "importance_sampling":
            return None
        low = 0.0 if self.config.loss == "cispo" else 1 - self.config.clip_low
        return {"clip_low_threshold": low, "clip_high_threshold": 1 + self.config.clip_high}

    def _adam(self) -> Any:
        c = self.config
        return sdk().AdamParams(
            learning_rate=c.learning_rate,
            beta1=c.adam_beta1,
            beta2=c.adam_beta2,
            eps=c.adam_eps,
            weight_decay=c.weight_decay,
            grad_clip_norm=c.max_grad_norm,
        )

    def _datum(self, row: Any, pictures: Mapping[str, Screenshot]) -> Any:
        import numpy as np

        types, image = sdk().types, self._renderer.special.image
        sequence = (*row.prompt_ids, *row.token_ids)
        idle, count = len(row.prompt_ids) - 1, len(row.token_ids)
        targets = [0 if t == image else t for t in sequence[1:]]

        def spread(values: Sequence[float]) -> Any:
            whole = np.concatenate([np.zeros(idle, dtype=np.float32), np.asarray(values, dtype=np.float32)])
            return types.TensorData.from_numpy(whole)

        inputs = {"target_tokens": types.TensorData.from_numpy(np.asarray(targets, dtype=np.int64))}
        if self.config.algorithm == "sft":
            inputs["weights"] = spread([row.weight] * count)
        else:
            inputs["logprobs"] = spread(row.logprobs or ())
            inputs["advantages"] = spread([row.weight * a for a in row.advantages])
        screens = [pictures[digest] for digest in row.images]
        return types.Datum(model_input=model_input(sequence[:-1], screens, self._renderer), loss_fn_inputs=inputs)

    def _now(self, rows: Update, output: Any) -> list[Sequence[float]]:
        """The policy's log-probabilities of every trained token before the update; empty where rows were imitated."""
        told = [given["logprobs"].tolist() for given in output.loss_fn_outputs if "logprobs" in given]
        if self.config.algorithm == "sft" or len(told) != len(rows):
            return []
        return [now[-len(row.token_ids) :] for row, now in zip(rows, told, strict=True)]

    def _post_kl(self, learnt: Sequence[TokenRow], pictures: Mapping[str, Screenshot], step: int) -> dict[str, float]:
        rows = list({row.place: row for row in learnt}.values())
        if not self.config.compute_post_kl or not rows:
            return {}
        with mapped(_Lost, f"measuring training step {step}"):
            after = logprobs_of(self.sampler.client, rows, pictures, self._renderer)
        return post_kl(rows, after, LOG_RATIO_LIMIT)


class _Lost(TrainError):
    """The service failed in the middle of a step."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(
            what, where=where, hint=hint or "cuarl train --resume latest, which goes on from the last checkpoint"
        )


def _done(future: Any) -> Any:
    return future.result() if hasattr(future, "result") else future
