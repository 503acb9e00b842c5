"""``cuarl tasks gym``: the tasks of a gym server, as training would split them."""

from __future__ import annotations

from typing import Annotated

import typer

from cuarl.cli.usage import finite
from cuarl.terminal.output import print_json, print_table
from cuarl.terminal.state import load_settings


def list_gym_tasks(
    gym_id: Annotated[str, typer.Option(help="Which gym of the server at GYM_BASE_URL.")] = "umetrip",
    train_ratio: Annotated[float, typer.Option(callback=finite, min=0, max=1, help="Share that trains.")] = 0.8,
    seed: Annotated[int, typer.Option(help="Draws that share.")] = 42,
    eval_number_range: Annotated[
        str | None, typer.Option(help="Evaluate on these numbers, such as 001-032, instead of by share.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tasks of a gym server, and what each is for with these options of --env gym."""
    from cuarl.env.gym.options import Options
    from cuarl.tasks.gym import Split
    from cuarl.workflow.gym import listed

    tasks = listed(Options(id=gym_id), load_settings())
    how = Split(ratio=train_ratio, seed=seed, eval_range=eval_number_range)
    training = {one.task.id for one in how.share(tasks, "train")}
    roles = {one.task.id: "train" if one.task.id in training else "eval" for one in tasks}
    if as_json:
        print_json(
            [{**one.task.model_dump(mode="json"), "number": one.number, "role": roles[one.task.id]} for one in tasks]
        )
        return
    rows = [
        (one.number, one.task.id, roles[one.task.id], ", ".join(one.task.tags), one.task.description) for one in tasks
    ]
    print_table(
        ("number", "id", "role", "tags", "goal"),
        rows,
        numeric={"number"},
        footer=f"{len(rows)} tasks, {len(training)} to train on",
    )
