"""``cuarl tasks generate`` and ``nearest``: tasks drawn without end, and how near they come to evaluation tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuarl.errors import BarMissed
from cuarl.tasks.nearest import BAR
from cuarl.tasks.suites import shipped_folder
from cuarl.terminal.output import note, print_json, print_table, print_text
from cuarl.terminal.state import load_settings

TasksDir = Annotated[Path | None, typer.Option(help="Folder of further suites (CUARL_TASKS_DIR).")]


def generate_tasks(
    count: Annotated[int, typer.Option(min=1, help="How many; the first ones are the same for any count.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="What they are drawn by.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A .jsonl file; without it standard output.")] = None,
    tasks_dir: TasksDir = None,
) -> None:
    """Draw tasks of the simulated phone, as a task file of one task a line.

    Goals of one to four changes, questions, conditions, and things to leave alone, in many wordings, over people,
    notes, mails, files and networks that are drawn too. No two have one goal, and none asks for what an evaluation task
    asks for. The same seed gives the same bytes everywhere. Of 10 tasks 7 are to train on; --split tells the others by
    what is new in them: a wording, an object, a kind of goal, an app.
    """
    from cuarl.workflow.generated_tasks import generated_lines, write_generated

    if out is None:
        for line in generated_lines(_folders(tasks_dir), count, seed):
            print_text(line.rstrip("\n"))
    else:
        write_generated(_folders(tasks_dir), count, seed, out)
        note(f"{count} tasks in {out}; cuarl train --tasks {out} --eval-tasks {out}")


def show_nearest(
    selectors: Annotated[list[str], typer.Argument(help="Tasks, as with --tasks.")],
    bar: Annotated[float, typer.Option(min=0, max=1, help="Similarity that is too much.")] = BAR,
    limit: Annotated[int, typer.Option(min=1, help="Pairs to show.")] = 20,
    tasks_dir: TasksDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the goals that are nearest to those of evaluation suites.

    Similarity is the share of the words of both goals that both have. Exit code 3: a pair reaches the bar.
    """
    from cuarl.workflow.generated_tasks import nearest_pairs

    pairs = nearest_pairs(_folders(tasks_dir), selectors, limit)
    if as_json:
        print_json([pair._asdict() for pair in pairs])
    else:
        rows = [(f"{p.similarity:.2f}", p.task_id, p.goal, p.evaluation_id, p.evaluation_goal) for p in pairs]
        print_table(("similarity", "id", "goal", "evaluation task", "its goal"), rows)
    near = [pair for pair in pairs if pair.similarity >= bar]
    if near:
        raise BarMissed(f"too near to an evaluation task: {near[0].task_id}, similarity {near[0].similarity:.2f}")


def _folders(tasks_dir: Path | None) -> list[Path]:
    further = load_settings(tasks_dir=tasks_dir).tasks_dir
    return [shipped_folder(), *([further] if further else [])]
