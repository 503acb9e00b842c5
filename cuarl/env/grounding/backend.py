"""From a file of pairs to tasks and their environments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.grounding.env import GroundingEnv
from cuarl.env.grounding.options import Options
from cuarl.env.grounding.pairs import Pair, read_pairs
from cuarl.env.task_checks import only
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Check, Task, TaskInstance, placeholders


def option_tasks(options: Options) -> list[Task]:
    """The pairs as tasks of one action each. Raises ConfigError without a file, TaskError for one that is wrong."""
    if options.file is None:
        raise ConfigError("env grounding needs a file of pairs", where="--env grounding", hint="--grounding FILE")
    path = Path(options.file)
    images = Path(options.images) if options.images else None
    return [_task(pair, path.stem, options) for pair in read_pairs(path, images, options.boxes)]


def _task(pair: Pair, suite: str, options: Options) -> Task:
    kind = ("phone" if pair.on_phone else "desktop") if options.actions == "auto" else options.actions
    return Task(
        id=pair.id,
        description=pair.instruction,
        env="grounding",
        difficulty="easy",
        category="input",
        max_steps=1,
        preset={"picture": str(pair.picture), "box": list(pair.box), "about": dict(pair.about), "device": kind},
        checks=(Check(path="hit", value=True),),
        params=_as_written(pair.instruction),
        suite=suite,
    )


def _as_written(instruction: str) -> dict[str, tuple[object, ...]]:
    """Parameters with which what looks like a placeholder stays as it is."""
    found: dict[str, tuple[object, ...]] = {}
    for name, field in placeholders(instruction):
        if field is None:
            found[name] = (f"{{{name}}}",)
        else:
            found[name] = ({one: f"{{{name}.{one}}}" for other, one in placeholders(instruction) if other == name},)
    return found


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Nothing has to be started."""
    only("grounding", tasks)

    async def make(task: TaskInstance) -> Env:
        kind: Literal["phone", "desktop"] = "phone" if task.preset["device"] == "phone" else "desktop"
        return GroundingEnv(kind)

    return Backend(make)
