"""``cuarl doctor``: what works here, and what to do about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuarl.cli.output import note, print_json, print_table
from cuarl.cli.state import load_settings

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  cuarl doctor\n  cuarl doctor --json > report.json")
def doctor(
    db: Annotated[str | None, typer.Option(help="Database URL to look at.")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; good for a bug report.")] = False,
) -> None:
    """Say what works here, and what to do about the rest. Exit code 1 if something must be mended."""
    from cuarl import __version__
    from cuarl.cli.checks import run_checks
    from cuarl.run.facts import machine

    checks = run_checks(load_settings(database_url=db, runs_dir=runs_dir))
    failed = [check.name for check in checks if check.status == "fail"]
    if as_json:
        print_json({"version": __version__, "machine": machine(), "checks": [check._asdict() for check in checks]})
    else:
        print_table(("what", "status", "detail", "fix"), [(c.name, c.status, c.detail, c.fix or None) for c in checks])
    if failed:
        note(f"to be mended: {', '.join(failed)}")
        raise typer.Exit(1)
    note("all is well; next: cuarl train --tasks settings --difficulty easy")
