"""``cuarl tasks``: look at, select and validate tasks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from cuarl.cli.commands.generated_tasks import generate_tasks, show_nearest
from cuarl.cli.commands.gym_tasks import list_gym_tasks
from cuarl.cli.commands.record import record
from cuarl.cli.commands.sign_in import sign_in
from cuarl.cli.help import HelpCommand
from cuarl.errors import BarMissed, ConfigError, TaskError
from cuarl.tasks.files import merge
from cuarl.tasks.library import Library
from cuarl.tasks.select import Condition, Filters
from cuarl.tasks.source import load, locate, named
from cuarl.tasks.suites import Role, shipped_folder
from cuarl.tasks.task import CATEGORIES, DIFFICULTIES, SPLITS
from cuarl.terminal.output import note, print_json, print_text
from cuarl.terminal.state import load_settings
from cuarl.terminal.task_proofs import prove_here
from cuarl.terminal.task_sights import begun_here, in_sight
from cuarl.terminal.task_views import count_of, in_full, print_proofs, print_report, show_selection

app = typer.Typer(
    no_args_is_help=True, epilog="\b\nStart with:\n  cuarl tasks list\n  cuarl tasks show train_02_enable_wifi"
)

_PANEL = "Selection"
SEEDS = 3
"""At which tasks are proven where nobody says how many."""

Selectors = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks",
        "-t",
        rich_help_panel=_PANEL,
        help="Category, suite, suite/glob, id, id glob, file, - (ids on standard input) or a JSON source; "
        "comma-separated or repeated.",
    ),
]
Suites = Annotated[list[str] | None, typer.Option("--suite", help="Keep this suite.", rich_help_panel=_PANEL)]
Envs = Annotated[list[str] | None, typer.Option("--env", help="Keep this environment.", rich_help_panel=_PANEL)]
Categories = Annotated[
    list[str] | None,
    typer.Option("--category", help=f"Keep this category: {', '.join(CATEGORIES)}.", rich_help_panel=_PANEL),
]
Difficulties = Annotated[
    list[str] | None,
    typer.Option("--difficulty", help=f"Keep this difficulty: {', '.join(DIFFICULTIES)}.", rich_help_panel=_PANEL),
]
Splits = Annotated[
    list[str] | None,
    typer.Option("--split", help=f"Keep this part of generated tasks: {', '.join(SPLITS)}.", rich_help_panel=_PANEL),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Keep tasks with this tag.", rich_help_panel=_PANEL)]
Conditions = Annotated[
    list[str] | None,
    typer.Option("-F", help="Keep tasks with field=value, field!=value or field~=regex.", rich_help_panel=_PANEL),
]
Limit = Annotated[int | None, typer.Option(help="Keep at most this many.", rich_help_panel=_PANEL)]
Seed = Annotated[
    int | None, typer.Option(help="Draw those that --limit keeps; else the first.", rich_help_panel=_PANEL)
]
TasksDir = Annotated[
    Path | None, typer.Option(help="Folder of further suites (CUARL_TASKS_DIR).", rich_help_panel=_PANEL)
]
Ids = Annotated[bool, typer.Option("--ids", help="Print ids alone, one a line.")]
Long = Annotated[bool, typer.Option("--long", "-l", help="Show goals and tags too.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def tasks() -> None:
    """Look at, select and validate tasks.

    Filters of one kind are alternatives and may be comma-separated; those of different kinds must all hold.
    """


@app.command(
    "list",
    epilog="""\b
Examples:
  cuarl tasks list
  cuarl tasks list --category settings --long
  cuarl tasks list --tasks my-tasks.yaml --json""",
)
def list_tasks(
    selectors: Selectors = None,
    suite: Suites = None,
    env: Envs = None,
    category: Categories = None,
    difficulty: Difficulties = None,
    split: Splits = None,
    tag: Tags = None,
    conditions: Conditions = None,
    limit: Limit = None,
    seed: Seed = None,
    tasks_dir: TasksDir = None,
    ids: Ids = False,
    long: Long = False,
    as_json: Json = False,
) -> None:
    """List tasks of all suites.

    An empty list is no error.
    """
    filters = _filters(suite, env, category, difficulty, split, tag, conditions, limit, seed)
    selection = load(
        selectors or (), filters, stdin=sys.stdin, role=None, folders=_folders(tasks_dir), allow_empty=True
    )
    show_selection(selection, ids=ids, long=long, as_json=as_json)


@app.command(
    "filter",
    epilog="""\b
Examples:
  cuarl tasks filter --tasks settings --difficulty easy --limit 20 --seed 1
  cuarl tasks filter -F difficulty!=hard -F description~=wi-?fi --ids | cuarl rollout --tasks -
  cuarl tasks filter --role eval --json > evaluation.json""",
)
def filter_tasks(
    selectors: Selectors = None,
    suite: Suites = None,
    env: Envs = None,
    category: Categories = None,
    difficulty: Difficulties = None,
    split: Splits = None,
    tag: Tags = None,
    conditions: Conditions = None,
    limit: Limit = None,
    seed: Seed = None,
    role: Annotated[
        Literal["train", "eval", "any"], typer.Option(help="What the tasks are for.", rich_help_panel=_PANEL)
    ] = "train",
    tasks_dir: TasksDir = None,
    ids: Ids = False,
    long: Long = False,
    as_json: Json = False,
) -> None:
    """Show what train, or eval, would take.

    Without --role these are tasks to train on. An empty selection is an error, as it is there.
    """
    filters = _filters(suite, env, category, difficulty, split, tag, conditions, limit, seed)
    selection = load(selectors or (), filters, stdin=sys.stdin, role=_role(role), folders=_folders(tasks_dir))
    for text in selection.notes:
        note(text)
    show_selection(selection, ids=ids, long=long, as_json=as_json)


@app.command(
    epilog="""\b
Examples:
  cuarl tasks show train_02_enable_wifi
  cuarl tasks show train_02_enable_wifi --seed 7 --json
  cuarl tasks show mine.yaml#buy_a_lamp --screenshot --set model_name=Qwen/Qwen3-VL-8B-Instruct"""
)
def show(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID|FILE[#ID]...", help="Ids of tasks, task files, or tasks of files.")
    ],
    seed: Annotated[int, typer.Option(help="Fill the parameters in as this seed draws them.")] = 0,
    screenshot: Annotated[
        bool,
        typer.Option(
            "--screenshot",
            help="Begin each task in its own environment: its first screen as a PNG, and the prompt as the model gets "
            "it.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="With --screenshot: folder of the pictures.")] = Path(),
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="With --screenshot: an option of environment or model; repeatable."),
    ] = None,
    tasks_dir: TasksDir = None,
    as_json: Json = False,
) -> None:
    """Print tasks in full.

    That is the goal, the parameters, what the device starts with, the checks, and the goal at one seed.
    """
    if not screenshot and (sets or out != Path()):
        raise ConfigError(f"--{'set' if sets else 'out'} has no effect without --screenshot", hint="--screenshot")
    library = Library.open(_folders(tasks_dir))
    found = [one.task for word in ids for one in named(word, library)]
    seen = begun_here(found, seed, out, sets or ()) if screenshot else [{} for _ in found]
    if as_json:
        print_json(
            [
                {**task.model_dump(mode="json"), "digest": task.digest, "instance": task.instantiate(seed), **more}
                for task, more in zip(found, seen, strict=True)
            ]
        )
    else:
        shown = [in_full(task, seed) + in_sight(more) for task, more in zip(found, seen, strict=True)]
        print_text("\n\n".join(shown))


@app.command(
    epilog="""\b
Examples:
  cuarl tasks validate
  cuarl tasks validate mine.yaml
  cuarl tasks validate settings --seeds 20
  cuarl tasks validate mine.yaml --prove --seeds 5
  cuarl tasks validate phone.yaml --prove --seeds 2 --set env.settle_ms=500"""
)
def validate(
    selectors: Annotated[list[str] | None, typer.Argument(help="As with --tasks; without any, all suites.")] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove",
            help="Play the plan, and nothing, in each task's own environment: simulator, browser, linux, adb, gbox, "
            "gym, pods.",
        ),
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=0, help=f"Seeds to prove at; unset means {SEEDS} with --prove. Without it, on the simulator alone."
        ),
    ] = None,
    profile: Annotated[str, typer.Option(help="Screen of the simulator.")] = "small",
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="With --prove: an option of the environment; repeatable.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Proofs at the same time.")] = os.cpu_count() or 1,
    tasks_dir: TasksDir = None,
    as_json: Json = False,
) -> None:
    """Check files, leaks and solvability of tasks.

    Leaks are goals of evaluation suites that are trained too. Solvability is checked with --prove: a task is proven at
    a seed if doing nothing does not solve it, and its plan (on the simulator, the oracle) does within its steps and
    without side effects. Exit code 2: a task is wrong; 3: one is not proven.
    """
    from cuarl.workflow.proof_record import LIVE
    from cuarl.workflow.task_review import findings_on

    if sets and not prove:
        raise ConfigError("--set has no effect without --prove", hint="--prove")
    if prove and seeds == 0:
        raise ConfigError("--prove needs a seed at least", where="--seeds 0", hint=f"--seeds {SEEDS}")
    seeds = seeds or (SEEDS if prove else 0)
    library = Library.open(_folders(tasks_dir))
    located, _ = locate(selectors or (), library, sys.stdin)
    chosen, _ = merge(located)
    findings = findings_on(located, library.suites, library.role_of)
    errors = [finding for finding in findings if finding.level == "error"]
    wrong = {finding.task_id for finding in errors if prove}
    playable = [task for task in chosen if task.id not in wrong]
    proofs = prove_here(playable, seeds, profile, jobs, LIVE if prove else (), sets or ()) if seeds else []
    failed = sum(proof["failed"] for proof in proofs)
    if as_json:
        print_json(
            {"tasks": len(chosen), "seeds": seeds, "findings": [f._asdict() for f in findings], "proofs": proofs}
        )
    else:
        print_report(findings, [proof for proof in proofs if proof["failed"] and not prove])
        if prove:
            print_proofs(proofs, seeds)
    if errors:
        raise TaskError(
            f"{count_of(len(errors), 'error')} in {count_of(len(chosen), 'task')}", hint="docs/guides/tasks.md"
        )
    if failed:
        raise BarMissed(f"not proven: {failed} of {seeds * len(proofs)} instances of {count_of(len(proofs), 'task')}")
    proven = f", {len(proofs)} of them proven at {count_of(seeds, 'seed')}" if seeds else ""
    note(f"{count_of(len(chosen), 'task')} without errors{proven}")


@app.command(epilog="\b\nExamples:\n  cuarl tasks schema > task-file.schema.json\n  cuarl tasks schema --suite")
def schema(
    suite: Annotated[bool, typer.Option("--suite", help="That of suite.yaml instead.")] = False,
) -> None:
    """Print the JSON Schema of task files."""
    from cuarl.tasks.schema import suite_schema, task_file_schema

    print_json(suite_schema() if suite else task_file_schema())


app.command(
    "record",
    cls=HelpCommand,
    epilog="""\b
Examples:
  cuarl tasks record http://127.0.0.1:8000/ --goal "Put a lamp into the cart"
  cuarl tasks record shop.html --goal "Find the price of the red chair" --out chair.yaml
  cuarl tasks record linux --app mousepad --goal 'Save a note as note.txt'
  cuarl tasks record adb --goal 'Switch the dark theme on' --out dark.yaml""",
)(record)
app.command(
    "sign-in",
    cls=HelpCommand,
    epilog="""\b
Examples:
  cuarl tasks sign-in https://shop.example/login --out shop-login.json
  cuarl tasks sign-in https://shop.example/login --plan login.yaml --out shop-login.json
  cuarl rollout --env browser --tasks shop.yaml --browser-storage shop-login.json""",
)(sign_in)
app.command(
    "generate",
    short_help="Draw tasks without end on the simulated phone.",
    epilog="\b\nExamples:\n  cuarl tasks generate --count 20000 --seed 3 --out generated.jsonl\n"
    "  cuarl train --tasks generated.jsonl --eval-tasks generated.jsonl",
)(generate_tasks)


app.command(
    "nearest",
    short_help="Show how near tasks come to evaluation tasks.",
    epilog="\b\nExamples:\n  cuarl tasks nearest generated.jsonl\n  cuarl tasks nearest mine.yaml --bar 0.7 --json",
)(show_nearest)


app.command(
    "gym",
    short_help="List a gym server's tasks, and what each is for.",
    epilog="\b\nExamples:\n  cuarl tasks gym\n  cuarl tasks gym --gym-id my_gym --eval-number-range 001-032 --json",
)(list_gym_tasks)


def _folders(tasks_dir: Path | None) -> list[Path]:
    further = load_settings(tasks_dir=tasks_dir).tasks_dir
    return [shipped_folder(), *([further] if further else [])]


def _filters(
    suite: list[str] | None,
    env: list[str] | None,
    category: list[str] | None,
    difficulty: list[str] | None,
    split: list[str] | None,
    tag: list[str] | None,
    conditions: list[str] | None,
    limit: int | None,
    seed: int | None,
) -> Filters:
    return Filters(
        suites=_words(suite),
        envs=_words(env),
        categories=_words(category),
        difficulties=_words(difficulty),
        splits=_words(split),
        tags=_words(tag),
        where=tuple(Condition.parse(text) for text in conditions or ()),
        limit=limit,
        seed=seed,
    )


def _words(values: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def _role(name: Literal["train", "eval", "any"]) -> Role | None:
    return None if name == "any" else name
