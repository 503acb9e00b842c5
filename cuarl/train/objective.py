"""What is minimised, of rows: collated, scored by the policy, and put into the losses of ``loss`` and ``value``.

Whatever is computed of rows with the model is here: the loss of a micro-batch, with gradient, and what updates need to
know before the first of them (``precompute``), without. What is done with gradients is the learner's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, gather_object

from cuarl.errors import ConfigError, TrainError
from cuarl.policy.base import Policy
from cuarl.policy.inputs import Inputs, Row
from cuarl.policy.score import Scorer
from cuarl.train.batch import micro_batches, share_of_rank
from cuarl.train.config import LearnerConfig
from cuarl.train.loss import Loss, LossConfig, Tokens, beside, cross_entropy, policy_loss
from cuarl.train.reference import StartWeights
from cuarl.train.rows import Place, TokenRow
from cuarl.train.value import ValueHead, value_loss
from cuarl.types import Screenshot

Pictures = Mapping[str, Screenshot]
"""Screenshots by digest."""


class MicroBatch(NamedTuple):
    """A loss, and the batch that it was computed of."""

    loss: Loss
    inputs: Inputs


class _Found(NamedTuple):
    """What was precomputed of one row, token by token; empty where it was not asked for."""

    proximal: tuple[float, ...]
    reference: tuple[float, ...]
    values: tuple[float, ...]


class Objective:
    """The objective of one run, as a function of the policy's weights and of rows.

    ``head`` is the critic, if the configuration has one; ``start`` the weights that training began with, if a KL
    penalty is taken to them.
    """

    def __init__(self, policy: Policy, config: LearnerConfig, accelerator: Accelerator) -> None:
        self._policy, self._config, self._accelerator = policy, config, accelerator
        keep = int(config.activation_gib * 2**30)
        self.scorer = Scorer(policy, one_pass=config.sharded, keep_bytes=keep).eval()
        if keep and not (config.gradient_checkpointing and self.scorer.unpadded):
            raise ConfigError(
                "activation_gib has no effect here: it is for gradient_checkpointing, with plain LoRA or all weights "
                "of a Qwen-VL model on a CPU or a CUDA device, not in shards",
                hint="leave --activation-gib out",
            )
        self.start = StartWeights(policy) if config.reference == "start" and config.penalised else None
        self.head = self._value_head()
        self.entropy_bonus = 0.0
        """Weight of an entropy bonus beside the configured one; the learner's, who may change it between updates."""

    @property
    def loss_config(self) -> LossConfig:
        """How tokens turn into a gradient, as it is now."""
        loss = self._config.loss
        if not self.entropy_bonus:
            return loss
        return loss.model_copy(update={"entropy_coef": loss.entropy_coef + self.entropy_bonus})

    def _value_head(self) -> ValueHead | None:
        batch = self._config.batch
        if self._config.objective != "reward" or batch.baseline != "critic":
            return None
        head = ValueHead(self._policy.width, batch.critic)
        head.to(self._policy.device)
        for p in head.parameters():
            p.data = broadcast(p.data)
        return head

    # --- with gradient ---------------------------------------------------------------------------------------------

    def loss(self, rows: Sequence[TokenRow], pictures: Pictures) -> MicroBatch:
        """``Σ w_t l_t`` over the trained tokens of some rows; the sum over all parts of an update is its loss."""
        config, inputs = self._config, self._collate(rows, pictures)
        with self._accelerator.autocast():
            scores = self.scorer(inputs, self._temperatures(rows), with_hidden=self.head is not None)
        logprobs, entropy = scores.logprobs[inputs.answer_mask], scores.entropy[inputs.answer_mask]
        weights = self._spread([r.weight for r in rows], rows)
        if config.objective != "reward":
            rehearsed = self._spread([float(r.rehearsed) for r in rows], rows)
            return MicroBatch(cross_entropy(logprobs, weights, entropy=entropy, rehearsed=rehearsed), inputs)
        imitated = self._spread([float(r.imitated) for r in rows], rows).bool()
        if not imitated.any():
            loss = self._of_rewards(rows, logprobs, weights, entropy)
            return MicroBatch(self._with_critic(loss, scores.hidden, rows), inputs)
        own = ~imitated
        loss = self._of_rewards([r for r in rows if not r.imitated], logprobs[own], weights[own], entropy[own])
        return MicroBatch(beside(loss, logprobs[imitated], weights[imitated]), inputs)

    def _of_rewards(
        self, rows: Sequence[TokenRow], logprobs: torch.Tensor, weights: torch.Tensor, entropy: torch.Tensor
    ) -> Loss:
        """The policy's loss; of each token of ``rows``, (N,), what the policy and the batch say."""
        config = self._config
        tokens = Tokens(
            behaviour=self._flat([r.logprobs for r in rows]),
            advantages=self._flat([r.advantages for r in rows]),
            weights=weights,
            turns=self._spread(range(len(rows)), rows).long(),
            proximal=self._flat([r.proximal for r in rows]) if config.loss.decoupled else None,
        )
        reference = self._flat([r.reference for r in rows]) if config.loss.kl_penalty_coef else None
        return policy_loss(logprobs, tokens, self.loss_config, entropy=entropy, reference=reference)

    def _with_critic(self, loss: Loss, hidden: torch.Tensor | None, rows: Sequence[TokenRow]) -> Loss:
        """The policy's loss and the critic's: the head's own, whose share in the policy's layers is ``coef``."""
        if self.head is None or hidden is None:
            return loss
        config = self._config.batch.critic
        # at turn level a row has one value, at its first token; at token level it has one at each
        valued: list[int] = []
        at = 0
        for r in rows:
            valued += range(at, at + len(r.values))
            at += len(r.token_ids)
        found = value_loss(
            self.head(hidden[valued]),
            self._flat([r.values for r in rows]),
            self._flat([r.returns for r in rows]),
            torch.tensor([r.value_weight for r in rows for _ in r.values], device=hidden.device),
            config.clip,
        )
        coef = config.coef if config.trunk == "shared" else 1.0
        return Loss(loss.total + coef * found.total, loss.sums | found.sums)

    def stand_by(self, rows: Sequence[TokenRow], pictures: Pictures) -> torch.Tensor:
        """A loss of 0 from the shortest of ``rows``: other processes need this one's shards in their layers."""
        shortest = min(rows, key=lambda r: len(r.prompt_ids) + len(r.token_ids))
        scores = self.scorer(self._collate([shortest], pictures), self._temperatures([shortest]))
        return 0.0 * scores.logprobs.sum()

    # --- without ---------------------------------------------------------------------------------------------------

    def precompute(self, rows: Sequence[TokenRow], pictures: Pictures) -> list[TokenRow]:
        """``rows`` with all that updates need to know from before the first of them, the same on every process.

        That is, where the configuration asks for it: ``proximal``, logprobs under the policy as it is; ``reference``,
        those under the reference; ``values``, what the critic says at each token. Every process must call this.
        """
        loss, kl_in_reward = self._config.loss, self._config.batch.kl_coef > 0
        proximal, reference = loss.decoupled, bool(loss.kl_penalty_coef) or kl_in_reward
        if not (proximal or reference or self.head is not None):
            return list(rows)
        found = self._pass_over(rows, pictures, proximal=proximal, reference=reference, values=self.head is not None)
        return [replace(row, **values._asdict()) for row, values in zip(rows, found, strict=True)]

    def logprobs(self, rows: Sequence[TokenRow], pictures: Pictures) -> list[tuple[float, ...]]:
        """Of each row's tokens under the policy as it is, the same on every process. Every process must call this."""
        return [found.proximal for found in self._pass_over(rows, pictures, proximal=True)]

    def _pass_over(
        self,
        rows: Sequence[TokenRow],
        pictures: Pictures,
        *,
        proximal: bool = False,
        reference: bool = False,
        values: bool = False,
    ) -> list[_Found]:
        """One pass over ``rows``, shared out over the processes."""
        pack, limit = self._config.batch.pack, self._config.batch.max_tokens
        share = share_of_rank(rows, self._accelerator.process_index, self._accelerator.num_processes, pack=pack)
        mine: list[tuple[Place, _Found]] = []
        with torch.no_grad():
            for part in micro_batches(share, limit, pack=pack):
                inputs = self._collate(part, pictures)
                of_reference = self._under_reference(inputs, part) if reference else None
                now, valued = self._as_it_is(inputs, part, values=values) if proximal or values else (None, None)
                columns = (now if proximal else None, of_reference, valued)
                found = zip(*(_by_row(column, part) for column in columns), strict=True)
                mine += [(row.place, _Found(*of_row)) for row, of_row in zip(part, found, strict=True)]
        # share by share, so in another order than the rows came in
        known = dict(gather_object(mine))
        return [known[row.place] for row in rows]

    def _as_it_is(
        self, inputs: Inputs, rows: Sequence[TokenRow], *, values: bool
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(N,) logprobs of the policy, and what the critic says at the same tokens."""
        with self._accelerator.autocast():
            scores = self.scorer(inputs, self._temperatures(rows), with_hidden=values)
        valued = self.head(scores.hidden) if self.head is not None and values else None
        return scores.logprobs[inputs.answer_mask], valued

    def _under_reference(self, inputs: Inputs, rows: Sequence[TokenRow]) -> torch.Tensor:
        """(N,) logprobs of the base, adapter off, or of the policy that training began with."""
        reference: AbstractContextManager[None]
        reference = self._policy.reference() if self.start is None else self.start.put_into(self._policy)
        with reference, self._accelerator.autocast():
            logprobs: torch.Tensor = self.scorer(inputs, self._temperatures(rows)).logprobs
        return logprobs[inputs.answer_mask]

    # --- rows to tensors -------------------------------------------------------------------------------------------

    def _collate(self, rows: Sequence[TokenRow], pictures: Pictures) -> Inputs:
        try:
            inputs = self._policy.collate(
                [Row(r.prompt_ids, tuple(pictures[d] for d in r.images), r.token_ids) for r in rows],
                pack=self._config.batch.pack,
            )
        except KeyError as missing:
            row = next(r for r in rows if missing.args[0] in r.images)
            raise TrainError(f"picture {missing.args[0]} of the sampled window is missing", where=row.name) from None
        # cheap, and the one mistake that no metric would show
        trained = inputs.answer_ids[inputs.answer_mask].tolist()
        if trained != [t for r in rows for t in r.token_ids]:
            raise TrainError("the trained ids are not the sampled ids", where=f"{rows[0].name} and others")
        return inputs

    def _temperatures(self, rows: Sequence[TokenRow]) -> torch.Tensor:
        """(B,) float32."""
        return torch.tensor([r.temperature for r in rows], device=self._policy.device)

    def _flat(self, values: Sequence[Sequence[float] | None]) -> torch.Tensor:
        """The values of all rows behind each other, (N,) float32."""
        flat = [v for row in values for v in row or ()]
        return torch.tensor(flat, dtype=torch.float32, device=self._policy.device)

    def _spread(self, values: Sequence[float], rows: Sequence[TokenRow]) -> torch.Tensor:
        """One value a row to one value a trained token, (N,) float32."""
        spread = [v for v, r in zip(values, rows, strict=True) for _ in r.token_ids]
        return torch.tensor(spread, dtype=torch.float32, device=self._policy.device)


def _by_row(flat: torch.Tensor | None, rows: Sequence[TokenRow]) -> list[tuple[float, ...]]:
    """(N,) values of the rows' tokens to one tuple a row; empty tuples for None."""
    if flat is None:
        return [() for _ in rows]
    parts = flat.float().split([len(r.token_ids) for r in rows])
    return [tuple(part.tolist()) for part in parts]
