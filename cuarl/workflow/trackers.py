"""The trackers of ``accelerate.tracking`` by name: what each has to be told at its start, and what each can show.

accelerate, the tracker's own package and all that they import are loaded when a run asks for a tracker, and not before.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from cuarl.errors import MissingExtra

PACKAGES: Mapping[str, str] = {"wandb": "wandb", "tensorboard": "tensorboard", "mlflow": "mlflow", "trackio": "trackio"}
"""The package that each is in."""
_NOT_IN_MLFLOW = re.compile(r"[^\w\-. :/]", re.ASCII)
"""What names of metrics may not have there."""
_EXTRA = ("wandb", "tensorboard")
"""Those that the extra brings."""


def check_trackers(names: Sequence[str]) -> None:
    """Raise MissingExtra for the first whose package is not installed."""
    for name in names:
        package = PACKAGES[name]
        if importlib.util.find_spec(package) is None:
            hint = 'pip install "cuarl[track]"' if name in _EXTRA else f"pip install {package}"
            raise MissingExtra(f"--track {name} needs the package {package}", where="--track", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerRun:
    """What a tracker is told of a run at its start."""

    project: str
    name: str
    run_id: str
    folder: Path
    known: str | None
    """The id that the tracker gave the run when it was started; None at its first start."""
    after: int | None
    """The last step that it was told already, where the run is resumed."""


class Tracker:
    """One tracker that was started. All methods raise whatever it raises."""

    def __init__(self, name: str, inner: Any) -> None:
        self._name, self._inner = name, inner

    @classmethod
    def start(cls, name: str, run: TrackerRun) -> Tracker:
        """Start a tracker, or go on with its run."""
        from accelerate import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        PartialState()  # without it accelerate's logging raises
        inner = LOGGER_TYPE_TO_CLASS[name](**_ARGUMENTS[name](run))
        inner.start()
        return cls(name, inner)

    @property
    def id(self) -> str:
        """The id that it gave the run; empty where it has none."""
        inner = self._inner.tracker
        return str(inner.info.run_id if self._name == "mlflow" else getattr(inner, "id", None) or "")

    @property
    def url(self) -> str:
        """Where the run can be seen: an address, or a folder; empty where that is not known."""
        if self._name == "tensorboard":
            return str(self._inner.logging_dir)
        offline = self._name == "wandb" and self._inner.tracker.offline
        return "" if offline else str(getattr(self._inner.tracker, "url", None) or "")

    def configure(self, config: Mapping[str, Any]) -> None:
        """Hyperparameters, in one level of numbers and text."""
        self._inner.store_init_configuration(dict(config))

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Metrics of a step."""
        if self._name == "mlflow":
            values = {_NOT_IN_MLFLOW.sub("_", name): value for name, value in values.items()}
        self._inner.log(dict(values), step=step)

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int) -> None:
        """A table, as text where there is no other way; nothing where there is none at all."""
        if hasattr(self._inner, "log_table"):
            self._inner.log_table(name, columns=list(columns), data=[list(row) for row in rows], step=step)
        elif self._name == "tensorboard":
            self._inner.log({name: markdown(columns, rows)}, step=step)

    def pictures(self, name: str, pictures: Mapping[str, Image.Image], step: int) -> None:
        """Pictures by name; nothing for a tracker that has no place for them."""
        if self._name == "tensorboard":
            for title, picture in pictures.items():
                self._inner.log_images({f"{name}/{title}": np.asarray(picture)[None]}, step=step, dataformats="NHWC")
        elif hasattr(self._inner, "log_images"):
            self._inner.log_images({name: list(pictures.values())}, step=step)

    def finish(self) -> None:
        """Send what is left, and let go."""
        self._inner.finish()


def _wandb(run: TrackerRun) -> dict[str, Any]:
    # or it prints, and asks for a key on the terminal that the training runs in
    os.environ.setdefault("WANDB_SILENT", "true")
    # the run's own id, so that a resumed run goes on with it even where it was offline
    settings = {"console": "off"}
    return {
        "run_name": run.project,
        "name": run.name,
        "id": run.known or run.run_id,
        "resume": "allow",
        "dir": str(run.folder),
        "settings": settings,
    }


def _tensorboard(run: TrackerRun) -> dict[str, Any]:
    # what an interrupted attempt told of later steps is told again
    purge = {} if run.after is None else {"purge_step": run.after + 1}
    return {"run_name": "tensorboard", "logging_dir": str(run.folder), **purge}


def _mlflow(run: TrackerRun) -> dict[str, Any]:
    return {"experiment_name": run.project, "run_id": run.known, "run_name": run.name}


def _trackio(run: TrackerRun) -> dict[str, Any]:
    # it prints to standard output, which is for the run's results: its words go to the other
    for module in map(importlib.import_module, ("trackio", "trackio.run", "trackio.utils")):
        vars(module)["print"] = partial(print, file=sys.stderr)
    return {"run_name": run.project, "name": run.name, "resume": "allow"}


_ARGUMENTS = {"wandb": _wandb, "tensorboard": _tensorboard, "mlflow": _mlflow, "trackio": _trackio}


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as text."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace("|", "\\|").replace("\n", " ")
