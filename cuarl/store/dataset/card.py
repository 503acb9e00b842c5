"""The card of a data set: where it comes from, what is in it, and what its screens may show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from cuarl import __version__
from cuarl.store.records import RunRecord
from cuarl.store.redaction import redacted_by
from cuarl.trajectory import SCHEMA_VERSION, Trajectory

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MOST_RUNS = 50


@dataclass(slots=True)
class Told:
    """What the card says of the episodes; fills up while they are written."""

    redacted: str | None = None
    agents: Counter[str] = field(default_factory=Counter)
    backends: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    """Episodes with a verdict, by purpose."""
    succeeded: Counter[str] = field(default_factory=Counter)
    tasks: set[str] = field(default_factory=set)
    earlier: set[str] = field(default_factory=set)
    """What had changed pictures before, where episodes came from an export that was redacted."""

    def add(self, episode: Trajectory, overruled: Mapping[str, bool]) -> None:
        """Count an episode; ``overruled`` are people's verdicts."""
        self.agents[" ".join(filter(None, (episode.agent, episode.policy))) or "unknown"] += 1
        self.backends[episode.backend or episode.env or "unknown"] += 1
        self.tasks.add(episode.task_id)
        success = overruled.get(episode.episode_id, episode.success)
        if success is not None:
            self.judged[episode.purpose] += 1
            self.succeeded[episode.purpose] += success
        by = redacted_by(episode.info)
        if by is not None and by != self.redacted:
            self.earlier.add(by)


def dataset_card(told: Told, runs: Sequence[RunRecord], episodes: Counter[str], turns: Counter[str]) -> str:
    """Markdown with the front matter of hubs; ``episodes`` and ``turns`` are counted by split."""
    tables = {"turns": turns, "episodes": episodes}
    return _template("card.md.jinja").render(
        told=told,
        runs=runs[:_MOST_RUNS],
        runs_left=max(0, len(runs) - _MOST_RUNS),
        splits=sorted(episodes),
        tables={name: sorted(counts) for name, counts in tables.items() if counts},
        episodes=episodes,
        turns=turns,
        size=_size_category(turns.total()),
        version=__version__,
        schema=SCHEMA_VERSION,
    )


def chat_card(layout: str, told: Told, runs: Sequence[RunRecord], counts: Counter[str]) -> str:
    """The card of conversations for the trainer that ``layout`` names, counted by split."""
    return _template("chat.md.jinja").render(
        layout=layout,
        told=told,
        runs=runs[:_MOST_RUNS],
        runs_left=max(0, len(runs) - _MOST_RUNS),
        splits=sorted(counts),
        counts=counts,
        size=_size_category(counts.total()),
        version=__version__,
        schema=SCHEMA_VERSION,
    )


def _size_category(rows: int) -> str:
    """The word that hubs have for so many rows."""
    return next((word for limit, word in _SIZES if rows < limit), "1M<n<10M")


def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("cuarl.store.dataset"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    return environment.get_template(name)


def plain(text: str) -> str:
    """A text of anybody's in a table or a sentence: on one line, and no markup."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>|#!" else c if c.isprintable() else " " for c in text)[:200]
