"""Whether a run may be resumed with a configuration: it must be the same in everything that decides what is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cuarl.config.keys import paths, value_of
from cuarl.config.load import recorded
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ResumeMismatch


class Difference(NamedTuple):
    """A field with two values."""

    field: str
    old: Any
    new: Any


def differences(old: ExperimentConfig, new: ExperimentConfig) -> list[Difference]:
    """Fields with different values, in the order of the schema."""
    there, here = dict(_values(old)), dict(_values(new))
    pairs = ((path, there.get(path), here.get(path)) for path in {**there, **here})
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def _values(config: ExperimentConfig) -> Iterator[tuple[str, Any]]:
    return ((path, value_of(config, path)) for path in paths(config))


def check_resume(folder: Path, new: ExperimentConfig) -> None:
    """Raise ResumeMismatch if the run in ``folder`` was started with something else than ``new``."""
    old = recorded(folder / "config.json")
    free = old.resumable_fields & new.resumable_fields
    wrong = [difference for difference in differences(old, new) if difference.field not in free]
    if wrong:
        lines = "\n".join(f"  {field}: {old!r} in the run, {new!r} now" for field, old, new in wrong)
        raise ResumeMismatch(
            f"the configuration differs from the run's:\n{lines}",
            where=str(folder),
            hint=f"cuarl train --resume {folder.name} without these options, or --name for a new run",
        )
