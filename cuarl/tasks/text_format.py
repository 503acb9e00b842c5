r"""Text files of goals: one a line. Blank lines and lines that start with ``#`` are skipped; ``\#`` begins a goal."""

from __future__ import annotations

from cuarl.tasks.raw import RawTask


def read_text(text: str) -> list[RawTask]:
    """The goals of a text file."""
    tasks = []
    for number, line in enumerate(text.split("\n"), start=1):
        goal = line.strip()
        if goal and not goal.startswith("#"):
            goal = goal.removeprefix("\\") if goal.startswith("\\#") else goal
            tasks.append(RawTask({"description": goal}, number))
    return tasks
