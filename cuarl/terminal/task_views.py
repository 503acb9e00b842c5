"""How ``cuarl tasks`` shows tasks and what it found about them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cuarl.tasks.check import describe
from cuarl.tasks.review import Finding
from cuarl.tasks.source import Selection
from cuarl.tasks.task import CATEGORIES, DIFFICULTIES, Task
from cuarl.terminal.output import note, print_json, print_table, print_text


def show_selection(selection: Selection, *, ids: bool, long: bool, as_json: bool) -> None:
    """Print a selection as JSON, as ids, or as a table."""
    if as_json:
        print_json([task.model_dump(mode="json") for task in selection.tasks])
    elif ids:
        for task in selection.tasks:
            print_text(task.id)
    else:
        columns = ["id", "suite", "category", "difficulty", "steps", *(["env", "tags", "goal"] if long else [])]
        print_table(columns, [_row(task, long) for task in selection.tasks], numeric={"steps"})
        note(_summary(selection))


def _row(task: Task, long: bool) -> list[object]:
    row: list[object] = [task.id, task.suite or None, task.category, task.difficulty, task.max_steps]
    return [*row, task.env, " ".join(task.tags) or None, task.description] if long else row


def _summary(selection: Selection) -> str:
    if not selection.tasks:
        emptied = next((count.filter for count in selection.counts if not count.left), None)
        return f'no task: "{emptied}" leaves none' if emptied else "no task"
    categories = Counter(task.category for task in selection.tasks)
    difficulties = Counter(task.difficulty for task in selection.tasks)
    parts = [f"{name} {categories[name]}" for name in CATEGORIES if categories[name]]
    parts += [f"{name} {difficulties[name]}" for name in DIFFICULTIES if difficulties[name]]
    return f"{count_of(len(selection.tasks), 'task')}: {', '.join(parts)}; cuarl tasks show ID tells more"


def count_of(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def in_full(task: Task, seed: int) -> str:
    """A task with all its parts, and its goal at one seed."""
    instance = task.instantiate(seed)
    kind = f"{task.suite or 'no suite'}, {task.category}, {task.difficulty}, {task.env}, at most {task.max_steps} steps"
    rows = [("goal", task.description), ("kind", kind), ("tags", " ".join(task.tags))]
    rows += [(f"{{{name}}}", ", ".join(map(str, values))) for name, values in task.params.items()]
    rows += [("starts", f"{path} = {value!r}") for path, value in task.preset.items()]
    rows += [("check", describe(check)) for check in task.checks] or [("check", "none: it can't be scored")]
    rows += [("may change", glob) for glob in task.allow]
    rows += [(f"plan {number}", _line(line)) for number, line in enumerate(task.plan, start=1)]
    rows += [(f"at seed {seed}", instance.goal)] if task.params else []
    return "\n".join([task.id, *(f"  {name:<12}{text}" for name, text in rows if text)])


def _line(line: Mapping[str, Any]) -> str:
    """A step of a plan as it is written in a task file."""
    return ", ".join(f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in line.items())


def print_proofs(proofs: Sequence[Mapping[str, Any]], seeds: int) -> None:
    """Print of each task at how many seeds it is proven, how many turns its solution takes at most, and why not."""
    rows = [
        (
            one["task_id"],
            f"{seeds - one['failed']}/{seeds}",
            one["steps"] or None,
            "; ".join(f"{found['problem']} (seed {','.join(map(str, found['seeds']))})" for found in one["problems"]),
        )
        for one in proofs
    ]
    if rows:
        print_table(("id", "proven", "turns", "why not"), rows)


def print_report(findings: Sequence[Finding], unproven: Sequence[dict[str, Any]]) -> None:
    """Print findings, and why tasks are not proven at which seeds."""
    if findings:
        print_table(("level", "id", "at", "finding"), [(f.level, f.task_id, f.where, f.text) for f in findings])
    if unproven:
        rows = [
            (proof["task_id"], ",".join(map(str, found["seeds"])), found["problem"])
            for proof in unproven
            for found in proof["problems"]
        ]
        print_table(("id", "seeds", "not proven because"), rows)
