"""``cuarl model imitate``: all weights of a base learn what many goals need next on every screen of many walks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText

from cuarl.errors import ConfigError
from cuarl.policy.tiny import is_own
from cuarl.pretrain.build import goals
from cuarl.pretrain.calls import Kind
from cuarl.pretrain.dialogues import cells, tokens_for
from cuarl.pretrain.goals import GoalMaker
from cuarl.pretrain.moments import SIZES
from cuarl.pretrain.plan import Clock, Plan
from cuarl.pretrain.pretrain import Pretraining, pretrain
from cuarl.tasks.task import Task, TaskInstance

NO_DESKTOP = 10**9
"""Batches to the next one that shows desktops: goals are those of phones."""
FACTS = "imitate.json"
_WEIGHTS = "model.safetensors"


def plan(*, steps: int, minutes: float | None, batch: int, workers: int, learning_rate: float, seed: int) -> Plan:
    """A plan without the part in which letters alone are learnt, and with known wordings only."""
    return Plan(
        steps=steps,
        minutes=minutes,
        batch=batch,
        workers=workers,
        learning_rate=learning_rate,
        letters_until=0.0,
        letters_weight=0.0,
        soft=0.0,
        desktop_every=NO_DESKTOP,
        replays=1,
        seed=seed,
    )


def imitate(
    base: Path,
    folder: Path,
    plan: Plan,
    *,
    tasks: Sequence[Task],
    avoid: Sequence[TaskInstance],
    system_prompts: Mapping[Kind, str],
    device: str,
    report: Callable[[dict[str, float]], None],
) -> None:
    """Train the base in ``base`` on generated goals and on ``tasks``, and write what becomes of it to ``folder``.

    ``avoid`` is what evaluation asks for: generated goals keep clear of it. Raises ConfigError where the base is none
    of ``cuarl model build``.
    """
    if not is_own(str(base)):
        raise ConfigError(f"{base} was not made by cuarl model build", hint=f"cuarl model build --out {base}")
    model = AutoModelForImageTextToText.from_pretrained(str(base), dtype=torch.float32)
    seen = model.config.vision_config
    token = int(seen.patch_size) * int(seen.spatial_merge_size)
    heads = {kind: tokens_for(str(base), system_prompts[kind], cells(kind, token)).head for kind in SIZES}
    run = Pretraining(model, plan, heads, device)
    make = GoalMaker(str(base), dict(system_prompts), token, tuple(avoid), tuple(tasks), forbidden=goals())
    clock = Clock(plan)

    def keep() -> None:
        _save(run, plan, clock, base, folder)

    pretrain(run, make, clock, report=report, keep=keep)


def _save(run: Pretraining, plan: Plan, clock: Clock, base: Path, folder: Path) -> None:
    """The model so far as half precision safetensors, and how it came about."""
    if not folder.exists():
        shutil.copytree(base, folder, ignore=shutil.ignore_patterns(_WEIGHTS, "README.md"))
    configuration = (folder / "config.json").read_text("utf-8")
    weights = {k: v.detach().to("cpu", torch.float16) for k, v in run.model.state_dict().items()}
    run.model.save_pretrained(folder, state_dict=weights)
    (folder / "config.json").write_text(configuration, "utf-8")
    facts: dict[str, Any] = {
        "base": str(base), "plan": asdict(plan), "step": clock.step, "seconds": round(clock.seconds, 1)
    }  # fmt: skip
    (folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
