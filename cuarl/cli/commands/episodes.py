"""``cuarl episodes``: the episodes of a run, by what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cuarl.cli.commands.runs import find
from cuarl.cli.usage import finite
from cuarl.terminal.output import note, print_json, print_table
from cuarl.terminal.state import load_settings
from cuarl.workflow import episodes as parts

if TYPE_CHECKING:
    from cuarl.store.pages import EpisodeLine, EpisodeWhere

app = typer.Typer()

_WORDS = {True: "success", False: "failure", None: "no verdict"}


@app.command(
    epilog="""\b
Examples:
  cuarl episodes
  cuarl episodes settings --failed --sort reward
  cuarl episodes settings --task turn_bubbles --step 12 --json""",
)
def episodes(
    run: Annotated[str, typer.Argument(help="Name or id of a run, a unique beginning of one, or latest.")] = "latest",
    failed: Annotated[bool, typer.Option("--failed", help="Only those that were no success.")] = False,
    lost: Annotated[bool, typer.Option("--lost", help="Only those lost to infrastructure.")] = False,
    task: Annotated[str | None, typer.Option(help="Only of this task.")] = None,
    suite: Annotated[str | None, typer.Option(help="Only of tasks of this suite.")] = None,
    stop: Annotated[str | None, typer.Option(help="Only those that ended for this reason, such as max_turns.")] = None,
    step: Annotated[int | None, typer.Option(min=0, help="Only of this training step.")] = None,
    max_reward: Annotated[float | None, typer.Option(callback=finite, help="Only with at most this reward.")] = None,
    sort: Annotated[
        Literal["step", "newest", "reward", "-reward", "turns", "-turns", "seconds", "-seconds"],
        typer.Option(help="Order; with a minus the largest first."),
    ] = "step",
    limit: Annotated[int, typer.Option(min=1, help="Most lines.")] = 50,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")] = None,
    db: Annotated[
        str | None, typer.Option("--db", help="Database URL; else DATABASE_URL, POSTGRES_* or a file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List episodes of a run, without their turns. A person's verdict wins over the recorded one."""
    from cuarl.store.pages import Pages

    with parts.open_store(load_settings(database_url=db, runs_dir=runs_dir)) as store:
        pages = Pages(store.engine)
        line = find(pages, run)
        where: EpisodeWhere = {"run": line.id}
        given = {"task": task, "suite": suite, "stop": stop, "step": step, "max_reward": max_reward}
        where.update({name: value for name, value in given.items() if value is not None})  # type: ignore[typeddict-item]
        if failed:
            where["result"] = "failure"
        if lost:
            where["stop"] = "failed"
        found = pages.episode_lines(where, sort=sort, limit=limit + 1)
    if as_json:
        print_json([one.model_dump(mode="json") | {"success": one.success} for one in found[:limit]])
        return
    columns = ("episode", "task", "result", "reward", "stop", "turns", "s", "step")
    print_table(columns, [_row(one) for one in found[:limit]], numeric={"reward", "turns", "s", "step"})
    note(f"{line.name}: {'more than ' if len(found) > limit else ''}{min(len(found), limit)} episodes")


def _row(one: EpisodeLine) -> tuple[object, ...]:
    from cuarl.monitor.lines import number

    result = _WORDS[one.success] + (" (overruled)" if one.human is not None else "")
    because = f"{one.stop}: {one.failure.get('boundary')}" if one.failure else one.stop
    return one.id, one.task_id, result, number(one.reward), because, one.turn_count, f"{one.wall_s:.1f}", one.step
