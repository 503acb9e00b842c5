"""``cuarl model``: the shipped base, its scores, and how to make it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cuarl.cli.output import closing, note, print_json, print_table
from cuarl.errors import ConfigError, PrerequisiteError

app = typer.Typer(no_args_is_help=True)


@app.callback()
def model() -> None:
    """Build the shipped base, or list what can be trained."""


@app.command("list", epilog="\b\nExamples:\n  cuarl model list\n  cuarl model list --json")
def list_models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the shipped base with its scores on the skills it was taught."""
    from cuarl.policy import tiny

    facts = _facts(tiny.path())
    if as_json:
        print_json([{"name": "tiny", "path": str(tiny.path()), **facts}])
        return
    scores = {k.removeprefix("exam/"): f"{v:.1%}" for k, v in facts["scores"].items() if k.startswith("exam/")}
    print_table(("skill", "right"), list(scores.items()))
    note(f"tiny: {facts['parameters'] / 1e6:.1f} M parameters; its card is {tiny.path() / 'README.md'}")


@app.command(
    epilog="""\b
Examples:
  cuarl model build --out my-base
  cuarl model build --out my-base --device cuda --workers 14"""
)
def build(
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")],
    device: Annotated[str, typer.Option(help="Device to train on: auto, cuda, cpu.")] = "auto",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of pre-training; unset means those of the base.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that draw screens.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything.")] = 0,
) -> None:
    """Make the base from scratch: tokenizer, pre-training on drawn screens, softening, exam.

    Takes minutes on one GPU. The result is a folder for --model-name.
    """
    from dataclasses import replace

    import torch

    from cuarl.agent.formats import SYSTEM_PROMPTS
    from cuarl.policy.tiny.build import Build, build_base

    if out.exists():
        raise ConfigError(f"{out} is there already", hint="name another folder with --out")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        note("warning: on a CPU this takes the better part of a day")
    plain = Build(seed=seed)
    build = replace(
        plain,
        plan=replace(plain.plan, workers=workers, seed=seed, steps=steps or plain.plan.steps),
        softening=replace(plain.softening, workers=workers, seed=seed + 1),
    )
    torch.set_float32_matmul_precision("high")
    scores = build_base(
        build, out, system_prompts=list(SYSTEM_PROMPTS.values()), forbidden=_goals(), device=device, report=_report
    )
    closing(
        f"exam: pointing {scores['exam/point']:.1%}, reading {scores['exam/read']:.1%}, ways {scores['exam/way']:.1%}",
        where=out,
        then=f"cuarl eval base --model-name {out} --tasks settings --difficulty easy",
    )


def _goals() -> frozenset[str]:
    """Every goal of every shipped suite, so that none is ever pre-trained."""
    from cuarl.tasks.build import bindings
    from cuarl.tasks.source import load

    tasks = load(["all"], role=None).tasks
    return frozenset(i.goal.casefold().rstrip(".") for t in tasks for i in bindings(t))


def _report(values: dict[str, float]) -> None:
    shown = "  ".join(f"{k.removeprefix('exam/')} {v:.3g}" for k, v in values.items())
    note(shown)


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((folder / "build.json").read_text("utf-8"))
    except FileNotFoundError:
        raise PrerequisiteError(
            "the shipped base is not built", where=str(folder), hint=f"cuarl model build --out {folder}"
        ) from None
    return facts
