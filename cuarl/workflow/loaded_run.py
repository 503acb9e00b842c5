"""A run that was made, for programs: its metrics, its episodes, its evaluations, and tables of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuarl.config.load import recorded
from cuarl.config.schema import ExperimentConfig
from cuarl.evaluate.suite import RESULTS, Evaluation, overruled, read_results
from cuarl.run import Run, find_run
from cuarl.settings import Settings
from cuarl.trajectory import Trajectory
from cuarl.types import Screenshot
from cuarl.workflow import people
from cuarl.workflow.episodes import open_store

if TYPE_CHECKING:
    from cuarl.store import Store

Row = dict[str, Any]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedRun:
    """What a run has left. Everything is read when it is asked for, so a run under way may be looked at, too."""

    path: Path
    settings: Settings

    def __repr__(self) -> str:
        return f"<cuarl run {self.name}: {self.status}, {self.path}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.name

    @property
    def status(self) -> str:
        """How it ended, or that it goes on: ``success``, ``failed``, ``cancelled``, ``killed`` or ``running``."""
        return Run(self.path).status

    @property
    def config(self) -> ExperimentConfig:
        """What it was made with."""
        return recorded(self.path / "config.json")

    @property
    def metrics(self) -> list[Row]:
        """One row a step, with ``step``, ``time`` and the documented metrics (docs/reference/metrics.md)."""
        file = self.path / "metrics.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []

    @property
    def episodes(self) -> list[Trajectory]:
        """All finished episodes, whole and as recorded: every turn with its action and what was sampled."""
        with self._store() as store:
            return list(store.trajectories(run=Run(self.path).run_id))

    @property
    def evaluations(self) -> list[Evaluation]:
        """By training step, with the verdicts that people gave instead of the recorded ones."""
        files = sorted((self.path / "evals").glob(f"*/{RESULTS}"))
        said = people.overruled(self.settings, logger.warning) if files else {}
        return sorted((overruled(read_results(file), said) for file in files), key=lambda evaluation: evaluation.step)

    def table(self) -> list[Row]:
        """One flat row an episode, for ``pandas.DataFrame(run.table())``.

        ``success`` is what holds, a person's verdict before the recorded one, which is ``recorded_success``.
        """
        with self._store() as store:
            said = store.overruled(run=Run(self.path).run_id)
        return [_row(trajectory, said.get(trajectory.episode_id, trajectory.success)) for trajectory in self.episodes]

    def picture(self, digest: str) -> Screenshot:
        """The screenshot of this digest, which turns refer to."""
        with self._store() as store:
            return store.blobs.get(digest)

    @contextmanager
    def _store(self) -> Iterator[Store]:
        with open_store(self.settings) as store:
            yield store


def load_run(name: str | Path = "latest", settings: Settings | None = None) -> LoadedRun:
    """The run of that name, path or unique beginning. Raises ConfigError."""
    settings = settings or Settings.load()
    return LoadedRun(find_run(settings.runs_dir, str(name)), settings)


def _row(t: Trajectory, success: bool | None) -> Row:
    parts = {f"reward/{part.name}": part.value for part in t.reward_parts}
    return {
        "episode_id": t.episode_id,
        "group_id": t.group_id,
        "attempt": t.attempt,
        "step": t.step,
        "purpose": t.purpose,
        "task_id": t.task_id,
        "goal": t.goal,
        "category": t.category,
        "difficulty": t.difficulty,
        "env": t.env,
        "agent": t.agent,
        "policy": t.policy,
        "policy_version": t.policy_version,
        "seed": t.seed,
        "turns": len(t.turns),
        "stop": str(t.stop),
        "success": success,
        "recorded_success": t.success,
        "reward": t.reward,
        "answer": t.answer,
        "failure": t.failure and f"{t.failure.boundary} {t.failure.kind}",
        "prompt_tokens": t.usage.prompt_tokens,
        "sampled_tokens": t.usage.sampled_tokens,
        "wall_s": t.wall_s,
        **parts,
    }
