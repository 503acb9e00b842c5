"""``cuarl model build``: makes the shipped base from nothing but this package, in minutes on one GPU."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen2VLImageProcessorPil

from cuarl.pretrain import skills
from cuarl.pretrain.architecture import Shape, build_model, image_processor_config
from cuarl.pretrain.dialogues import DialogueMaker, screen_of
from cuarl.pretrain.exam import Exam
from cuarl.pretrain.navigation import names
from cuarl.pretrain.pretrain import Plan, Trainee, pretrain
from cuarl.pretrain.screens import random_world
from cuarl.pretrain.tokenizer import build_tokenizer
from cuarl.sim.phone.look import NOTIFICATIONS, POPUPS
from cuarl.sim.phone.world import PROFILES

Report = Callable[[dict[str, float]], None]


@dataclass(frozen=True, slots=True)
class Build:
    """Everything that decides the result."""

    plan: Plan = field(default_factory=Plan)
    softening: Plan = field(
        default_factory=lambda: Plan(
            steps=3000, batch=128, learning_rate=3e-4, warmup=60, faded_by=0.0, soft=True, seed=1
        )
    )
    """The second run; at this rate, and with a warm-up, it leaves what was learnt in place."""
    shape: Shape = field(default_factory=Shape)
    softness: skills.Softness = field(default_factory=skills.Softness)
    seed: int = 0
    exam_size: int = 1024


def corpus(seed: int = 0, screens: int = 1500) -> list[str]:
    """Text of the kind that the base reads and writes: labels of random screens, requests, system texts."""
    rng = random.Random(f"corpus/{seed}")
    lines = [*names(), *(" ".join(p) for p in POPUPS), *(f"{n.title} {n.text}" for n in NOTIFICATIONS)] * 20
    lines += [f"{word} " * 2 for word in skills.NOISE] * 50
    for _ in range(screens):
        screen = screen_of(random_world(rng))
        lines += [f.label for f in screen.facts]
        lines += [r.request for r in skills.rounds(rng, screen, 6)]
    return lines


def prepare(build: Build, system_prompts: list[str], folder: Path) -> PreTrainedTokenizerFast:
    """Write the tokenizer and the image processor's settings, and return the tokenizer."""
    tokenizer = build_tokenizer(corpus(build.seed), system_prompts=system_prompts, tools=["mobile_use", "computer_use"])
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(**image_processor_config()).save_pretrained(folder)
    return tokenizer


def build_base(
    build: Build, folder: Path, *, system_prompts: list[str], forbidden: frozenset[str], device: str, report: Report
) -> dict[str, float]:
    """Build everything into ``folder`` and return the final exam scores.

    The first of ``system_prompts`` is the one that is trained with; all of them become single tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = prepare(build, system_prompts, folder)
    model = build_model(tokenizer, build.shape, seed=build.seed)
    exam = Exam.drawn(build.exam_size)

    def probe(trainee: Trainee) -> dict[str, float]:
        return exam.scores(trainee, tokenizer.backend_tokenizer, system_prompts[0])

    last: dict[str, float] = {}

    def note(values: dict[str, float]) -> None:
        last.update(values)
        report(values)

    make = DialogueMaker(str(folder), system_prompts[0], build.softness, forbidden)
    screen = PROFILES[make.profile]
    size = screen.height_px, screen.width_px
    for plan in (build.plan, build.softening):
        pretrain(model, plan, make, size=size, device=device, report=note, probe=probe)
    save(model, build, last, folder)
    return last


def save(model: Any, build: Build, scores: dict[str, float], folder: Path) -> None:
    """Weights as half precision safetensors, and how they came about as ``build.json``."""
    model = model.to("cpu", torch.float16)
    model.save_pretrained(folder)
    facts = {
        "plan": asdict(build.plan),
        "softening": asdict(build.softening),
        "shape": asdict(build.shape),
        "softness": asdict(build.softness),
        "seed": build.seed,
        "scores": scores,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    (folder / "build.json").write_text(json.dumps(facts, indent=1) + "\n")
