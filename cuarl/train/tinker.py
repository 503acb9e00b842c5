"""Training by the Tinker service: batches as datums, losses as sums, checkpoints as the service's paths.

The service's losses are sums over tokens and datums without a mask (a position is idle because its advantage is 0), and
its clip bounds are bounds of the ratio itself. Ours are weighted sums with distances from 1. So with w the weight of a
token (``batch.token_weights``) and A its advantage, what is sent is w·A, and 1 − clip_low and 1 + clip_high: for w > 0,
min(r w A, clip(r) w A) = w min(r A, clip(r) A). The gradient and the learning rate are then those of local training.

A turn of prompt p_1 … p_n and answer a_1 … a_m becomes one datum: inputs p_1 … p_n a_1 … a_(m−1), targets shifted by
one. Image positions have target 0 and advantage 0.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import PositiveFloat

from cuarl.errors import CheckpointError, TrainError
from cuarl.policy.prompt import Renderer
from cuarl.policy.remote.tinker import TinkerSampler, mapped, model_input, sdk
from cuarl.run.atomic import write_text
from cuarl.run.checkpoints import POINTER, keep_pending, mark, marked_step, newest, read_pending, step_name
from cuarl.train.batch import Batch, BatchConfig, policy_updates, supervised_updates
from cuarl.train.rows import without
from cuarl.types import Record, Screenshot

logger = logging.getLogger(__name__)


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


class TinkerLearner:
    """What ``train.loop`` needs of a learner, by a ``TrainingClient``. ``sampler`` gets new weights after each step."""

    def __init__(self, client: Any, sampler: TinkerSampler, renderer: Renderer, config: TinkerConfig) -> None:
        self.client, self.sampler, self._renderer, self.config = client, sampler, renderer, config

    def begin_step(self, step: int) -> None:
        """Nothing is kept from step to step here."""

    def undo_step(self) -> None:
        """Nothing is kept from step to step here."""

    def update(self, batch: Batch, step: int) -> dict[str, float]:
        """Learn from ``batch``, and sample from the result from now on; blocks.

        Raises TrainError for turns that can't be trained on and for what the service refuses or loses. Gradients may
        then have been applied or not, so the way on is to resume from the last checkpoint, never to send again.
        """
        losses: list[float] = []
        ratios: list[float] = []
        rows = tokens = skipped = 0
        for update in self._updates(batch):
            if not update:
                skipped += 1
                continue
            with mapped(_Lost, f"training step {step}"):
                data = [self._datum(row, batch.pictures) for row in update]
                # both are on their way before either is waited for: the service works in cycles
                gradients = self.client.forward_backward(data, self._loss_name, self._loss_config)
                stepped = self.client.optim_step(self._adam())
                output = gradients.result()
                stepped.result()
            losses.append(float(output.metrics.get("loss:sum", 0.0)))
            ratios += self._log_ratios(update, output)
            rows += len(update)
            tokens += sum(len(row.token_ids) for row in update)
        self.refresh(step)
        metrics = {"optim/lr": self.config.learning_rate, "optim/updates": float(len(losses))}
        metrics |= {"optim/skipped_flat": float(skipped), "train/rows": float(rows), "train/tokens": float(tokens)}
        if losses:
            metrics["policy/loss"] = sum(losses) / len(losses)
        if ratios:
            metrics["policy/logprob_diff_mean"] = sum(map(abs, ratios)) / len(ratios)
        return metrics

    def refresh(self, version: int) -> None:
        """Sample from the weights as they are."""
        with mapped(_Lost, "publishing the weights for sampling"):
            self.sampler.use(_done(self.client.save_weights_and_get_sampling_client()), version)

    # --- conversions -----------------------------------------------------------------------------------------------

    def _updates(self, batch: Batch) -> Any:
        groups = without(batch.groups, self._renderer.special.unsayable, self._renderer.decode)
        if self.config.algorithm == "sft":
            return supervised_updates(groups, self.config.batch, batch.importance)
        return policy_updates(groups, self.config.batch)

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

    def _log_ratios(self, rows: Sequence[Any], output: Any) -> list[float]:
        """Trainer against sampler, of every trained token."""
        found = []
        for row, given in zip(rows, output.loss_fn_outputs, strict=True):
            now = given["logprobs"].tolist() if "logprobs" in given and row.logprobs else ()
            found += [a - b for a, b in zip(now[-len(row.token_ids) :], row.logprobs or (), strict=False)]
        return found


class TinkerCheckpoints:
    """What ``train.loop`` needs of checkpoints: the service keeps the weights, and a folder of the run says where.

    ``on_commit`` is called with the step and its folder before it becomes the one to resume from. ``start`` is the step
    that was restored.
    """

    def __init__(
        self,
        root: Path,
        learner: TinkerLearner,
        *,
        run: str,
        on_commit: Callable[[int, Path], None] | None = None,
        start: int = 0,
    ) -> None:
        self.root, self._learner, self._run, self._on_commit = root, learner, run, on_commit
        self._start = start

    def folder(self, step: int) -> Path:
        """Where the pointer of ``step`` lies."""
        return self.root / step_name(step)

    def save(self, step: int) -> Path:
        """Have the service save weights, optimiser and weights for sampling. Raises CheckpointError."""
        name, client = f"{self._run}-{step_name(step)}", self._learner.client
        with mapped(CheckpointError, f"saving step {step}"):
            # a step that was saved but not committed is done, and saved, again
            state = client.save_state(name, overwrite=True)
            weights = client.save_weights_for_sampler(name)
            paths = {"state": state.result().path, "sampler": weights.result().path, "step": step}
        if marked_step(self.root) is None:
            mark(self.root, self._start)  # so that what is saved now is known to be unfinished
        folder = self.folder(step)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / POINTER, json.dumps(paths, indent=2) + "\n")
        return folder

    def commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None = None) -> None:
        """Make ``step`` the one to resume from; ``pending`` as of ``Checkpoints``."""
        keep_pending(self.folder(step), pending)
        if self._on_commit is not None:
            self._on_commit(step, self.folder(step))
        mark(self.root, step)


@dataclass(frozen=True, slots=True)
class SavedState:
    """A checkpoint to resume from."""

    step: int
    path: str
    """Where the service has it."""
    pending: Mapping[str, float] | None
    """Metrics of the step, if they are still to be reported."""


def saved_state(root: Path) -> SavedState | None:
    """The state to resume from; None if there is none. Raises CheckpointError for a broken pointer."""
    found = newest(root)
    if found is None:
        return None
    if found.note:
        logger.warning("%s", found.note)
    where = root / step_name(found.step) / POINTER
    try:
        path = str(json.loads(where.read_text(encoding="utf-8"))["state"])
        return SavedState(found.step, path, read_pending(where.parent))
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"the pointer to the service's checkpoint can't be read: {error}", where=str(where)
        ) from error


class _Lost(TrainError):
    """The service failed in the middle of a step."""

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(
            what, where=where, hint=hint or "cuarl train --resume latest, which goes on from the last checkpoint"
        )


def _done(future: Any) -> Any:
    return future.result() if hasattr(future, "result") else future
