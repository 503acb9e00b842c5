"""The model card of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

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
    algorithm: str = "grpo"
    tasks: str = "all"
    """The selection of tasks, in words."""
    seed: int = 0
    config_digest: str = ""


def model_card(about: About, step: int, *, adapter: bool, metrics: Mapping[str, float]) -> str:
    """Markdown with the front matter of model hubs. Of ``metrics``, results of evaluations are shown."""
    environment = Environment(
        loader=PackageLoader("cuarl.train"), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    results = sorted((name, value) for name, value in metrics.items() if name.startswith("eval/"))
    return environment.get_template("card.md.jinja").render(
        about=about, step=step, adapter=adapter, version=cuarl.__version__, results=results,
        citation=_citation(about.algorithm),
    )  # fmt: skip
