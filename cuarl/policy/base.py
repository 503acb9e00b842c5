"""The seam between policies and all that samples, scores and trains them.

A policy is one model in this process. What it is made of is its own business: ``qwen_vl`` takes models apart,
``generic`` runs them as they are, and a test has one of a few lines. Samplers, ``score.Scorer`` and the learner know
this protocol alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import torch
from torch import nn

from cuarl.policy.inputs import Inputs, Row, Side
from cuarl.policy.prompt import Renderer
from cuarl.policy.work import Work
from cuarl.types import Screenshot

if TYPE_CHECKING:
    from cuarl.policy.jobs import Job


class ScoreOptions(NamedTuple):
    """How answers are scored; none of it changes a result beyond rounding."""

    training: bool = False
    """Whether gradients will be asked for, so that layers may be replayed (gradient checkpointing)."""
    one_pass: bool = False
    """Run every layer exactly once whatever the batch, so that processes which hold its shards meet in each."""
    unpadded: bool = False
    """Run the rows behind each other, without padding; only for policies that say ``unpadded``."""
    keep_bytes: int = 0
    """Activations that are kept all the same where layers are replayed; only without padding."""


class TokenScores(NamedTuple):
    """Of the N real answer tokens, row by row: (N,) float32 each, and the states (N, D) they were drawn from."""

    logprobs: torch.Tensor
    entropy: torch.Tensor
    hidden: torch.Tensor


class Policy(Renderer, Protocol):
    """One model in this process, which knows what its prompts look like, too (``Renderer``).

    ``version`` counts updates: whoever changes the weights calls ``updated()``.
    """

    name: str
    version: int
    revision: str | None
    """Commit of the base, where it came from a hub."""
    model: Any
    """The module that is trained and saved: an adapter on its base, or a whole model."""
    base: Any
    """The module under the adapter; ``model`` itself where there is none."""
    halted: Callable[[], bool]
    """Asked before each token: whether sampling is to end at once, since those who wait for answers are cancelled."""

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        ...

    def on_device(self) -> AbstractContextManager[None]:
        """Inside, this policy's GPU is the thread's current one; a thread begins with the first."""
        ...

    @property
    def context(self) -> int:
        """The most tokens that prompt and answer may have together."""
        ...

    @property
    def width(self) -> int:
        """Size of a hidden state."""
        ...

    @property
    def has_adapter(self) -> bool:
        """Whether an adapter lies on the base."""
        ...

    @property
    def unpadded(self) -> bool:
        """Whether answers can be scored without padding, as the policy is now."""
        ...

    def in_lanes(self, screenshots: Iterable[Screenshot]) -> bool:
        """Whether parts of a batch that shows these are better scored by one thread each than by all together."""
        ...

    def suppressed(self) -> torch.Tensor | None:
        """The ids that are never sampled, on this policy's device; None if there are none."""
        ...

    # --- sampling and scoring --------------------------------------------------------------------------------------

    def collate(self, rows: Sequence[Row], *, padding: Side = "left", pack: bool = False) -> Inputs:
        """``rows`` as a batch on this policy's device.

        ``padding`` is the side of the prompts' padding; the answers' is always the right. With ``pack``, rows that
        extend one another become one sequence, for scoring (``packing``). Neither changes a result. Raises ValueError
        if a row's image tokens and screenshots don't agree.
        """
        ...

    def answer(self, jobs: Sequence[Job]) -> None:
        """Sample an answer to every job (``answering.draw_next``); the model is in evaluation mode."""
        ...

    def score(self, inputs: Inputs, temperature: torch.Tensor, options: ScoreOptions) -> TokenScores:
        """Score the real answer tokens of a batch of this policy's own, with gradients where they are on.

        ``temperature`` is (N,), one for each of them. Drawn from and scored is the same distribution
        (``distribution``).
        """
        ...

    # --- weights and state -----------------------------------------------------------------------------------------

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters that are trained."""
        ...

    def reference(self) -> AbstractContextManager[None]:
        """Inside, the policy is its base. Raises ConfigError if it doesn't keep one."""
        ...

    def updated(self, version: int | None = None) -> None:
        """Say that the weights have changed: the next samples carry ``version`` (one more than before if None)."""
        ...

    def save_companions(self, folder: str) -> None:
        """Write what has to lie beside the weights to use them (tokenizer, processor) into ``folder``."""
        ...

    def with_model(self, model: Any, memo: dict[int, object]) -> Self:
        """A copy of this policy around ``model``, a deep copy of its own made with ``memo``; caches start empty."""
        ...

    def forget_pictures(self) -> None:
        """Encode every picture anew from now on."""
        ...

    def recall_pictures(self) -> None:
        """Forget those since ``forget_pictures``, and know the ones before it again, where that changes no bit."""
        ...

    def forget_prompts(self) -> None:
        """Compute every prompt anew from now on: what is sampled then doesn't depend on what was sampled before."""
        ...

    def release_memory(self, keep_bytes: int = 0) -> None:
        """Give back the memory that only sampling needs, if it is more than ``keep_bytes``."""
        ...

    def take_work(self) -> Work | None:
        """What was computed since this was last called; None where nobody counts."""
        ...
