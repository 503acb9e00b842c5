"""``cuarl tasks``: look at, select and validate tasks."""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cuarl.cli.commands.gym_tasks import list_gym_tasks
from cuarl.errors import BarMissed, ConfigError, TaskError
from cuarl.tasks.build import bindings
from cuarl.tasks.files import Located, merge
from cuarl.tasks.library import Library
from cuarl.tasks.review import Finding, Judged, review
from cuarl.tasks.select import Condition, Filters, some
from cuarl.tasks.source import load, locate, named
from cuarl.tasks.suites import Role, shipped_folder
from cuarl.tasks.task import CATEGORIES, DIFFICULTIES, Task
from cuarl.terminal.output import console, is_terminal, note, print_json, print_text
from cuarl.terminal.state import STATE, load_settings
from cuarl.terminal.task_views import count_of, in_full, print_proofs, print_report, show_selection

if TYPE_CHECKING:
    from cuarl.workflow.task_proofs import Proof

app = typer.Typer(
    no_args_is_help=True, epilog="\b\nStart with:\n  cuarl tasks list\n  cuarl tasks show train_02_enable_wifi"
)

_PANEL = "Selection"
MOST_BINDINGS = 20
"""Of a task's values are tried with its environment's own rules."""
SEEDS = 3
"""At which tasks are proven where nobody says how many."""
LIVE = ("browser", "linux")
"""Environments that ``--prove`` starts."""

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
    filters = _filters(suite, env, category, difficulty, tag, conditions, limit, seed)
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
    filters = _filters(suite, env, category, difficulty, tag, conditions, limit, seed)
    selection = load(selectors or (), filters, stdin=sys.stdin, role=_role(role), folders=_folders(tasks_dir))
    for text in selection.notes:
        note(text)
    show_selection(selection, ids=ids, long=long, as_json=as_json)


@app.command(
    epilog="""\b
Examples:
  cuarl tasks show train_02_enable_wifi
  cuarl tasks show train_02_enable_wifi --seed 7 --json"""
)
def show(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID|FILE[#ID]...", help="Ids of tasks, task files, or tasks of files.")
    ],
    seed: Annotated[int, typer.Option(help="Fill the parameters in as this seed draws them.")] = 0,
    tasks_dir: TasksDir = None,
    as_json: Json = False,
) -> None:
    """Print tasks in full.

    That is the goal, the parameters, what the device starts with, the checks, and the goal at one seed.
    """
    library = Library.open(_folders(tasks_dir))
    found = [one.task for word in ids for one in named(word, library)]
    if as_json:
        print_json(
            [
                {**task.model_dump(mode="json"), "digest": task.digest, "instance": task.instantiate(seed)}
                for task in found
            ]
        )
    else:
        print_text("\n\n".join(in_full(task, seed) for task in found))


@app.command(
    epilog="""\b
Examples:
  cuarl tasks validate
  cuarl tasks validate mine.yaml
  cuarl tasks validate settings --seeds 20
  cuarl tasks validate mine.yaml --prove --seeds 5"""
)
def validate(
    selectors: Annotated[list[str] | None, typer.Argument(help="As with --tasks; without any, all suites.")] = None,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Play the plan, and nothing, in each task's own environment: browser, linux, simulator."
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
    if sets and not prove:
        raise ConfigError("--set has no effect without --prove", hint="--prove")
    if prove and seeds == 0:
        raise ConfigError("--prove needs a seed at least", where="--seeds 0", hint=f"--seeds {SEEDS}")
    seeds = seeds or (SEEDS if prove else 0)
    library = Library.open(_folders(tasks_dir))
    located, _ = locate(selectors or (), library, sys.stdin)
    chosen, _ = merge(located)
    findings = _findings(located, library)
    errors = [finding for finding in findings if finding.level == "error"]
    wrong = {finding.task_id for finding in errors if prove}
    playable = [task for task in chosen if task.id not in wrong]
    proofs = _proofs(playable, seeds, profile, jobs, LIVE if prove else (), sets or ()) if seeds else []
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
        tags=_words(tag),
        where=tuple(Condition.parse(text) for text in conditions or ()),
        limit=limit,
        seed=seed,
    )


def _words(values: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for value in values or () for word in value.split(",") if word.strip())


def _role(name: Literal["train", "eval", "any"]) -> Role | None:
    return None if name == "any" else name


def _findings(located: Sequence[Located], library: Library) -> list[Finding]:
    """Findings on the chosen tasks; leaks are looked for in all suites."""
    chosen = {one.task.id for one in located}
    everything = {one.task.id: one for one in [*located, *(o for s in library.suites for o in s.located)]}
    judged = [Judged(one, library.role_of(one)) for one in everything.values()]
    return [*_impossible(located), *(finding for finding in review(judged) if finding.task_id in chosen)]


def _impossible(located: Sequence[Located]) -> Iterator[Finding]:
    """Tasks that their environment can't be set up for, or whose plan it can't follow, with some values at least."""
    from cuarl.env.plans import plan_problem
    from cuarl.env.presets import preset_problem

    for one in located:
        found = list(bindings(one.task, MOST_BINDINGS))
        problems = itertools.chain(map(preset_problem, found), map(plan_problem, found))
        if problem := next(filter(None, problems), None):
            yield Finding("error", one.task.id, one.where, problem)


def _proofs(
    chosen: Sequence[Task], seeds: int, profile: str, jobs: int, live: Sequence[str], sets: Sequence[str]
) -> list[dict[str, Any]]:
    """What came of each task that can be played here, in the order of ``chosen``."""
    from rich.progress import Progress

    from cuarl.workflow.task_proofs import SIMULATED, prove_all

    provable = [task for task in chosen if task.env in (*SIMULATED, *live)]
    if len(provable) < len(chosen):
        others = some([task.id for task in chosen if task.env not in (*SIMULATED, *live)])
        note(f"{'not played here' if live else 'not simulated'}, so not proven: {others}")
    silent = STATE.quiet or STATE.display in ("plain", "none") or not is_terminal(sys.stderr)
    found: dict[str, list[Proof]] = {}
    with Progress(console=console(stderr=True), transient=True, disable=silent) as bar:
        done = partial(bar.advance, bar.add_task("proving", total=len(provable) * seeds))
        for env in live:
            there = [task for task in provable if task.env == env]
            found |= {proofs[0].task_id: proofs for proofs in _live_proofs(env, there, seeds, jobs, sets, done)}
        simulated = [task for task in provable if task.env in SIMULATED]
        for proofs in prove_all(simulated, seeds, profile=profile, jobs=jobs):
            found[proofs[0].task_id] = proofs
            done(seeds)
    return [_row(found[task.id]) for task in provable]


def _live_proofs(
    env: str, tasks: Sequence[Task], seeds: int, jobs: int, sets: Sequence[str], done: Callable[[], None]
) -> list[list[Proof]]:
    from cuarl.config.load import resolve
    from cuarl.workflow import environments, signals
    from cuarl.workflow.task_proofs import prove_live

    if not tasks:
        return []
    config = resolve(flags={"env": env, "max_concurrent_rollouts": jobs}, sets=sets).config
    backend = environments.check(config, tasks, load_settings())
    return signals.run(partial(prove_live, tasks, seeds, backend, at_once=jobs, done=done))


def _row(proofs: Sequence[Proof]) -> dict[str, Any]:
    problems = Counter(proof.problem for proof in proofs if proof.problem)
    return {
        "task_id": proofs[0].task_id,
        "failed": problems.total(),
        "steps": max(proof.steps for proof in proofs),
        "problems": [
            {"problem": problem, "seeds": [proof.seed for proof in proofs if proof.problem == problem]}
            for problem in problems
        ],
    }
