"""``cuarl tasks sign-in``: sign in to a web application once, for all episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuarl.cli.options import Request, experiment_options
from cuarl.config.schema import EnvFields
from cuarl.errors import ConfigError
from cuarl.terminal.output import closing, note, print_json


@experiment_options(EnvFields, env=lambda options: "browser")
def sign_in(
    request: Request,
    url: Annotated[str, typer.Argument(help="Address of the page to sign in at.")],
    out: Annotated[Path, typer.Option(help="File to write; whoever has it is signed in.")] = Path("sign-in.json"),
    plan: Annotated[
        Path | None,
        typer.Option(help="File with a task's plan to do it; $NAME in what is typed is taken from the environment."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over the file.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of your page; 0 takes a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Don't open it in a browser.")] = False,
) -> None:
    """Sign in to a web application yourself, or by a plan, and keep its cookies and storage for episodes."""
    from cuarl.env.browser.storage import write_storage
    from cuarl.web.listen import require_web
    from cuarl.workflow.human import Page
    from cuarl.workflow.sign_in import by_hand, by_plan, read_lines, sign_in_task

    if out.exists() and not replace:
        raise ConfigError("the file is there already", where=str(out), hint="--replace, or another --out")
    if plan is None:
        require_web()
    elif port or no_open:
        raise ConfigError("--port and --no-open are for signing in by hand", hint="leave them out, or --plan")
    task = sign_in_task(url, read_lines(plan) if plan else ())
    if request.config.env.type != "browser":
        raise ConfigError("one signs in in a browser", hint="--env browser, or leave it out")
    storage = by_plan(request, task) if plan else by_hand(request, task, Page(request.watcher, port, not no_open))
    if storage is None:
        note("you gave up, so nothing is written")
        raise typer.Exit(1)
    write_storage(out, storage)
    counts = {"cookies": len(storage["cookies"]), "origins": len(storage["origins"])}
    if request.json:
        print_json({"file": str(out), **counts})
    if not any(counts.values()):
        note("the page has set no cookie and stored nothing, so this signs nobody in")
    found = f"{counts['cookies']} cookies, storage of {counts['origins']} origins; whoever has the file is signed in"
    closing(found, where=out, then=f"cuarl rollout --env browser --tasks FILE --browser-storage {out}")
