"""``cuarl model build``: makes a base from nothing but this package, in minutes on one GPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForImageTextToText, AutoTokenizer, PreTrainedTokenizerFast, Qwen2VLImageProcessorPil

from cuarl.errors import ConfigError
from cuarl.pretrain.architecture import SHAPES, Shape, SizeName, build_model, image_processor_config
from cuarl.pretrain.calls import Kind
from cuarl.pretrain.corpus import corpus
from cuarl.pretrain.dialogues import DialogueMaker, cells, tokens_for
from cuarl.pretrain.exam import Exam, ExamMaker
from cuarl.pretrain.moments import SIZES
from cuarl.pretrain.plan import Clock, Plan
from cuarl.pretrain.pretrain import Pretraining, pretrain
from cuarl.pretrain.soft import Softness
from cuarl.pretrain.tokenizer import build_tokenizer
from cuarl.tasks.build import bindings
from cuarl.tasks.source import load

Report = Callable[[dict[str, float]], None]
STATE = "training.pt"
"""What an unfinished run goes on from: weights, the head for letters, and the optimiser's moments."""
_FACTS = "build.json"
_EXAM_PART, _INTERIM = 16, 4
"""Screens of a part of the exam, and how many parts are asked while the run goes on."""


@dataclass(frozen=True, slots=True)
class Build:
    """Everything that decides the result."""

    size: SizeName = "tiny"
    plan: Plan = field(default_factory=Plan)
    softness: Softness = field(default_factory=Softness)
    seed: int = 0
    exam_screens: int = 512
    """On a CPU a thirty-second of them: each answer is a matter of seconds there."""

    @property
    def shape(self) -> Shape:
        """Sizes of the layers."""
        return SHAPES[self.size]


def build_base(
    build: Build,
    folder: Path,
    *,
    system_prompts: Mapping[Kind, str],
    device: str,
    report: Report,
) -> dict[str, float]:
    """Build everything into ``folder`` and return the final exam scores.

    A folder with an unfinished run is gone on with. No request that is a goal of a shipped suite occurs in training.
    """
    prompts = dict(system_prompts)
    tokenizer = _tokenizer(build, prompts, folder)
    model = build_model(tokenizer, build.shape, seed=build.seed)
    token = build.shape.token
    heads = {kind: tokens_for(str(folder), prompts[kind], cells(kind, token)).head for kind in SIZES}
    run = Pretraining(model, build.plan, heads, device)
    clock = _resumed(run, build.plan, folder, device)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        whole = build.exam_screens if device != "cpu" else build.exam_screens // 32
        part = min(_EXAM_PART, whole)
        drawn = [pool.submit(ExamMaker(), i, min(part, whole - i)) for i in range(0, whole, part)]

        def exam(parts: int) -> dict[str, float]:
            asked = Exam(tuple(q for p in drawn[:parts] for q in p.result()))
            return asked.scores(run.trainee, str(folder), prompts)

        def keep() -> None:
            _save(run, build, clock, {}, folder)
            report({"step": clock.step, "seconds": clock.seconds, **(exam(_INTERIM) if not run.lettering else {})})

        make = DialogueMaker(str(folder), prompts, build.softness, goals(), token)
        pretrain(run, make, clock, report=report, keep=keep)
        scores = exam(len(drawn))
    _save(run, build, clock, scores, folder)
    (folder / STATE).unlink()
    return scores


def check_folder(folder: Path, *, resume: bool) -> None:
    """See that a run may write to ``folder``. Raises ConfigError."""
    unfinished = (folder / STATE).is_file() or _unfinished(folder / _FACTS)
    if resume and not unfinished:
        raise ConfigError(f"{folder} has no unfinished run", hint=f"cuarl model build --out {folder}")
    if folder.exists() and not resume:
        more = ", or go on with it: --resume" if unfinished else ""
        raise ConfigError(f"{folder} is there already", hint=f"name another folder with --out{more}")


def _unfinished(facts: Path) -> bool:
    return facts.is_file() and not json.loads(facts.read_text("utf-8"))["scores"]


def goals() -> frozenset[str]:
    """Every goal of every shipped suite, so that none is ever pre-trained; case-folded."""
    tasks = load(["all"], role=None).tasks
    return frozenset(i.goal.casefold().rstrip(".") for t in tasks for i in bindings(t))


def _tokenizer(build: Build, prompts: Mapping[Kind, str], folder: Path) -> PreTrainedTokenizerFast:
    """That of the folder; else a new one, written with the image processor's settings."""
    if (folder / "tokenizer.json").is_file():
        known: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(str(folder))
        return known
    folder.mkdir(parents=True, exist_ok=True)
    made = build_tokenizer(
        corpus(build.seed), system_prompts=list(prompts.values()), tools=["mobile_use", "computer_use"]
    )
    made.save_pretrained(folder)
    Qwen2VLImageProcessorPil(**image_processor_config(build.shape)).save_pretrained(folder)
    return made


def _resumed(run: Pretraining, plan: Plan, folder: Path, device: str) -> Clock:
    """Go on with what is in ``folder``: where the state was left behind, with the weights alone, as half precision."""
    if (folder / STATE).is_file():
        state = torch.load(folder / STATE, map_location=device, weights_only=True)
        run.restore(state["run"])
        return Clock(plan, state["step"], state["seconds"])
    if not (folder / _FACTS).is_file():
        return Clock(plan)
    known = AutoModelForImageTextToText.from_pretrained(str(folder), dtype=torch.float32)
    run.take(known.state_dict())
    run.lettering = False
    facts = json.loads((folder / _FACTS).read_text("utf-8"))
    return Clock(plan, facts["step"], facts["seconds"])


def _save(run: Pretraining, build: Build, clock: Clock, scores: dict[str, float], folder: Path) -> None:
    """What the run can go on from, and the model so far: half precision safetensors, ``build.json`` beside them."""
    state = {"run": run.state(), "step": clock.step, "seconds": clock.seconds}
    torch.save(state, folder / f"{STATE}.new")
    (folder / f"{STATE}.new").replace(folder / STATE)
    model = run.model
    weights = {k: v.detach().to("cpu", torch.float16) for k, v in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=weights)
    _write_dtype(folder)
    facts: dict[str, Any] = {
        "size": build.size,
        "plan": asdict(build.plan),
        "shape": asdict(build.shape),
        "softness": asdict(build.softness),
        "seed": build.seed,
        "step": clock.step,
        "seconds": round(clock.seconds, 1),
        "scores": scores,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    (folder / _FACTS).write_text(json.dumps(facts, indent=1) + "\n")


def _write_dtype(folder: Path) -> None:
    """The configuration says in which numbers the weights are kept, whatever the model in training has."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dtype": "float16"}, indent=2) + "\n")
