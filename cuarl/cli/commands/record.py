"""``cuarl tasks record``: a task file of what a person does on a page, a desktop or a phone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cuarl.cli.options import Request, experiment_options
from cuarl.config.schema import EnvFields
from cuarl.errors import ConfigError
from cuarl.terminal.output import closing, note, print_json


def _env_of(options: Mapping[str, Any]) -> str:
    """The environment that is worked; an address is a page's."""
    return str(options["what"]) if options["what"] in ("linux", "adb") else "browser"


@experiment_options(EnvFields, env=_env_of)
def record(
    request: Request,
    what: Annotated[str, typer.Argument(help="A page's address or file, linux (a desktop) or adb (a phone).")],
    goal: Annotated[str, typer.Option(help="What is to be done, as the agent is told.")],
    out: Annotated[Path, typer.Option(help="Task file to write.")] = Path("recorded.yaml"),
    app: Annotated[
        str | None, typer.Option(help="What a desktop begins with, as 'mousepad a.txt', or a phone, as Settings.")
    ] = None,
    task_id: Annotated[str | None, typer.Option("--id", help="Id of the task; else made of the goal.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of your page; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Don't open it in a browser.")] = False,
) -> None:
    """Work a web page, a Linux desktop or a phone yourself, and have a task file made of it.

    It has a plan of what you did, and suggested checks.
    """
    from cuarl.web.listen import require_web
    from cuarl.workflow.human import Page
    from cuarl.workflow.task_file_recording import record_task, task_to_record, write_task

    require_web()
    if out.exists():
        raise ConfigError("the file is there already", where=str(out), hint=f"--out {out.stem}-2{out.suffix}")
    task = task_to_record(what, goal, app)
    if request.config.env.type != task.env:
        raise ConfigError(f"this is recorded in env {task.env}", hint=f"--env {task.env}, or leave it out")
    made = record_task(request, task, Page(request.watcher, port, not no_open), task_id)
    if made is None:
        note("you gave up, so nothing is written")
        raise typer.Exit(1)
    write_task(out, made)
    if request.json:
        print_json(made)
    if not made["checks"]:
        note("nothing is new at the end, so no check is suggested: write what must hold at the end")
    found = f"{len(made['plan'])} steps, {len(made['checks'])} suggested checks: keep those that are meant"
    closing(found, where=out, then=f"cuarl tasks validate {out} --prove")
