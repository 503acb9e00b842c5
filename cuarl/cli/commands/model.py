"""``cuarl model``: the shipped base and its scores, and checkpoints made ready for others."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cuarl.cli.complete import run_names
from cuarl.errors import ConfigError, PrerequisiteError
from cuarl.terminal.output import closing, note, print_json, print_table
from cuarl.terminal.state import load_settings

app = typer.Typer(
    no_args_is_help=True, epilog="\b\nStart with:\n  cuarl model list\n  cuarl model export latest --out FOLDER"
)


class MergeInto(StrEnum):
    """Number formats of a merged model."""

    bfloat16 = "bfloat16"
    float32 = "float32"


class BaseSize(StrEnum):
    """Sizes of a base."""

    tiny = "tiny"
    small = "small"


@app.callback()
def model() -> None:
    """Build the shipped base, list what can be trained, hand over what was trained."""


@app.command("list", epilog="\b\nExamples:\n  cuarl model list\n  cuarl model list --json")
def list_models(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the shipped base with its scores on the skills it was taught."""
    from cuarl.policy import tiny

    facts = _facts(tiny.path())
    if as_json:
        print_json([{"name": "tiny", "path": str(tiny.path()), **facts}])
        return
    print_table(("skill", "right"), [(skill, f"{right:.1%}") for skill, right, _ in _skills(facts["scores"])])
    note(f"tiny: {facts['parameters'] / 1e6:.1f} M parameters; its card is {tiny.path() / 'README.md'}")


@app.command(
    short_help="Make the shipped base from scratch.",
    epilog="""\b
Examples:
  cuarl model build --out my-base --minutes 8 --workers 14
  cuarl model build --out my-base --size small --device cuda --minutes 8 --workers 14
  cuarl model build --out my-base --size small --minutes 8 --resume""",
)
def build(
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet, but see --resume.")],
    size: Annotated[BaseSize, typer.Option(help="7 or 16 million parameters.")] = BaseSize.tiny,
    device: Annotated[str, typer.Option(help="Device to train on: auto, cuda, cpu.")] = "auto",
    minutes: Annotated[
        float | None, typer.Option(min=0.1, max=10_000, help="How long to train, instead of --steps.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches to train on; unset: 3,000.")] = None,
    batch: Annotated[int, typer.Option(min=4, help="Screens of a batch.")] = 128,
    workers: Annotated[int, typer.Option(min=1, help="Processes that draw screens.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run in the folder.")] = False,
) -> None:
    """Make a base from scratch: tokenizer, letters, pre-training on drawn screens, exam on words it never saw.

    Takes minutes on one GPU. The result is a folder for --model-name; so is an unfinished run's, as far as it is.
    """
    import torch

    from cuarl.agent.formats import SYSTEM_PROMPTS
    from cuarl.pretrain.build import Build, build_base, check_folder
    from cuarl.pretrain.plan import STEPS, Plan

    check_folder(out, resume=resume)
    _check_length(minutes, steps)
    device = _device(device)
    plan = Plan(steps=steps or STEPS, minutes=minutes, batch=batch, workers=workers, seed=seed)
    torch.set_float32_matmul_precision("high")
    scores = build_base(
        Build(size=size.value, plan=plan, seed=seed),
        out,
        system_prompts=SYSTEM_PROMPTS,
        device=device,
        report=_report,
    )
    rows = [(skill, f"{right:.1%}", str(asked)) for skill, right, asked in _skills(scores)]
    print_table(("skill", "right", "asked"), rows)
    closing(
        f"reading words it never saw {scores.get('exam/read', 0):.1%}",
        where=out,
        then=f"cuarl eval base --model-name {out} --tasks settings --difficulty easy",
    )


@app.command(
    short_help="Imitate the simulated phone's planner on goals without end.",
    epilog="""\b
Examples:
  cuarl model imitate examples/reading-base --out wide-base --minutes 8 --workers 14
  cuarl model imitate examples/reading-base --out wide-base --tasks settings_train --steps 500""",
)
def imitate(
    base: Annotated[Path, typer.Argument(help="Folder of a base that cuarl model build made.")],
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")],
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--tasks", "-t", help="Tasks of the phone to imitate beside generated ones; unset: all to train on."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Device to train on: auto, cuda, cpu.")] = "auto",
    minutes: Annotated[
        float | None, typer.Option(min=0.1, max=10_000, help="How long to train, instead of --steps.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Batches to train on; unset: 3,000.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Screens of a batch.")] = 128,
    learning_rate: Annotated[float, typer.Option(min=0, max=1, help="The highest, after the warm-up.")] = 1e-3,
    workers: Annotated[int, typer.Option(min=1, help="Processes that draw screens.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything.")] = 0,
) -> None:
    """Train all weights of a base on what the planner would do next, for many goals on each of many screens.

    Goals are generated, and those of the training tasks; none comes near a goal of an evaluation suite. Takes minutes
    on one GPU with some cores beside it. The result is a folder for --model-name.
    """
    import torch

    from cuarl.agent.formats import SYSTEM_PROMPTS
    from cuarl.pretrain.imitate import imitate as run
    from cuarl.pretrain.imitate import plan
    from cuarl.pretrain.plan import STEPS
    from cuarl.tasks.source import load
    from cuarl.tasks.suites import shipped_folder
    from cuarl.workflow.generated_tasks import evaluated

    if out.exists():
        raise ConfigError(f"{out} is there already", hint="name another folder with --out")
    _check_length(minutes, steps)
    device = _device(device)
    torch.set_float32_matmul_precision("high")
    chosen = load(tasks or (), role="train").tasks
    if elsewhere := next((task for task in chosen if task.env != "phone"), None):
        raise ConfigError(
            f"its planner knows the simulated phone, and {elsewhere.id} is a task of {elsewhere.env}",
            where="--tasks",
            hint="--tasks phone",
        )
    run(
        base,
        out,
        plan(
            steps=steps or STEPS,
            minutes=minutes,
            batch=batch,
            workers=workers,
            learning_rate=learning_rate,
            seed=seed,
        ),
        tasks=chosen,
        avoid=evaluated([shipped_folder()]),
        system_prompts=SYSTEM_PROMPTS,
        device=device,
        report=_report,
    )
    closing("imitated", where=out, then=f"cuarl eval base --model-name {out} --tasks all")


@app.command(
    short_help="Hand over a checkpoint as plain PEFT and vLLM take it.",
    epilog="""\b
Examples:
  cuarl model export latest --out my-adapter
  cuarl model export my-run@16 --out my-adapter --json""",
)
def export(
    target: Annotated[
        str,
        typer.Argument(
            help="A run (RUN@STEP for another checkpoint than the last), or its folder.", autocompletion=run_names
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")],
    db: Annotated[str | None, typer.Option(help="Database URL, for the figures of the card.")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs.")] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the base model; read it first.")
    ] = False,
    untrained: Annotated[
        bool,
        typer.Option(
            "--untrained", help="Take an adapter that changes nothing, too: one whose B weights are all zero."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a checkpoint as plain PEFT and vLLM take it, with tokenizer and a card: base, training, measured success.

    A checkpoint of full fine-tuning is written as a whole model.
    """
    from cuarl.workflow.publishing import export_checkpoint, found

    done = export_checkpoint(
        found(target, load_settings(database_url=db, runs_dir=runs_dir), note),
        out,
        untrained=untrained,
        trusted=trust_remote_code,
    )
    if as_json:
        print_json(done, line=True)
        return
    closing(done["what"], where=out, then=done["then"])


@app.command(
    short_help="Fold an adapter into its base, as a whole model.",
    epilog="""\b
Examples:
  cuarl model merge latest --out my-model
  cuarl model merge my-run@16 --out my-model --dtype float32 --device cuda""",
)
def merge(
    target: Annotated[
        str,
        typer.Argument(
            help="A run (RUN@STEP for another checkpoint than the last), or its folder.", autocompletion=run_names
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write; it must not exist yet.")],
    dtype: Annotated[MergeInto, typer.Option(help="Number format of the written weights.")] = MergeInto.bfloat16,
    device: Annotated[str, typer.Option(help="Where the sum is made and checked: auto, cpu, cuda.")] = "cpu",
    db: Annotated[str | None, typer.Option(help="Database URL, for the figures of the card.")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs.")] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the base model; read it first.")
    ] = False,
    untrained: Annotated[
        bool,
        typer.Option(
            "--untrained", help="Take an adapter that changes nothing, too: one whose B weights are all zero."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fold an adapter into its base and write a whole model, after checking that it says the same as the two.

    The sum is made in float32, so that takes twice the memory of the base in bfloat16.
    """
    from cuarl.workflow.publishing import found, merge_checkpoint

    done = merge_checkpoint(
        found(target, load_settings(database_url=db, runs_dir=runs_dir), note),
        out,
        dtype.value,
        device,
        untrained=untrained,
        trusted=trust_remote_code,
    )
    if as_json:
        print_json(done, line=True)
        return
    closing(done["what"], where=out, then=done["then"])


def _skills(scores: dict[str, float]) -> list[tuple[str, float, int]]:
    """Skill, share of right answers, and how many were asked (0 if that is not known)."""
    return [
        (name.removeprefix("exam/"), right, int(scores.get(f"asked/{name.removeprefix('exam/')}", 0)))
        for name, right in scores.items()
        if name.startswith("exam/")
    ]


def _check_length(minutes: float | None, steps: int | None) -> None:
    if minutes is not None and steps is not None:
        raise ConfigError("a run ends after --minutes or after --steps, not both", hint="leave one out")


def _device(asked: str) -> str:
    """The device to train on; on a CPU a warning."""
    import torch

    device = ("cuda" if torch.cuda.is_available() else "cpu") if asked == "auto" else asked
    if device == "cpu":
        note("warning: on a CPU this takes days; a few minutes show that it runs")
    return device


def _report(values: dict[str, float]) -> None:
    shown = "  ".join(f"{k.removeprefix('exam/')} {v:.3g}" for k, v in values.items() if not k.startswith("asked/"))
    note(shown)


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((folder / "build.json").read_text("utf-8"))
    except FileNotFoundError:
        raise PrerequisiteError(
            "the shipped base is not built", where=str(folder), hint=f"cuarl model build --out {folder}"
        ) from None
    return facts
