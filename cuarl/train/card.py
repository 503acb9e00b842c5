"""The model card of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

import cuarl
from cuarl.config.algorithms import ALGORITHMS
from cuarl.types import Record


def _citation(name: str) -> str:
    known = ALGORITHMS.get(name)
    if known is None:
        return name
    paper = f", [arXiv:{known.paper}](https://arxiv.org/abs/{known.paper})" if known.paper else ""
    return f"{name} ({known.title}{paper})"


class About(Record):
    """Where a checkpoint comes from; goes into its card and its ``cuarl.json``."""

    run: str
    base_model: str
    """As a user names it: ``tiny``, a hub id, or a folder."""
    base_revision: str | None = None
    """Resolved commit of a hub id."""
    quantization: str = "none"
    """``nf4`` if the base was in four bits while its adapter was trained."""
    algorithm: str = "grpo"
    tasks: str = "all"
    """The selection of tasks, in words."""
    seed: int = 0
    config_digest: str = ""


class Figure(Record):
    """A success rate that the store knows of this checkpoint; it is never shown without its interval and count."""

    suite: str
    rate: float
    low: float
    high: float
    n: int
    before: float | None = None
    """The rate of the untrained policy on the same suite."""


class Folded(Record):
    """How an adapter was merged into its base."""

    dtype: str
    largest: float
    """Largest difference of log-probabilities from base and adapter, in nats."""
    tolerance: float


def model_card(
    about: About,
    step: int,
    *,
    adapter: bool,
    metrics: Mapping[str, float],
    figures: Sequence[Figure] = (),
    rank: int | None = None,
    merged: Folded | None = None,
) -> str:
    """Markdown with the front matter of model hubs.

    Of ``metrics``, results of evaluations are shown; ``figures`` are shown in their place. With the adapter's ``rank``
    the card says how to serve it.
    """
    environment = Environment(
        loader=PackageLoader("cuarl.train"), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    results = sorted((name, value) for name, value in metrics.items() if name.startswith("eval/"))
    served = next((r for r in _SERVED_RANKS if rank is not None and r >= rank), rank)
    return environment.get_template("card.md.jinja").render(
        about=about,
        step=step,
        adapter=adapter,
        version=cuarl.__version__,
        results=results,
        figures=figures,
        rank=served,
        merged=merged,
        citation=_citation(about.algorithm),
    )


_SERVED_RANKS = (8, 16, 32, 64, 128, 256)
"""Largest ranks that vLLM may be told to expect."""
