"""``cuarl doctor``: what works here, and what to do about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cuarl.terminal.output import note, print_json, print_table
from cuarl.terminal.state import load_settings

app = typer.Typer()


@app.callback(invoke_without_command=True, epilog="\b\nExamples:\n  cuarl doctor\n  cuarl doctor --json > report.json")
def doctor(
    context: typer.Context,
    db: Annotated[str | None, typer.Option(help="Database URL to look at.")] = None,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; good for a bug report.")] = False,
) -> None:
    """Say what works here, and what to do about the rest. Exit code 1 if something must be fixed."""
    if context.invoked_subcommand is not None:
        return
    from cuarl import __version__
    from cuarl.run.facts import machine
    from cuarl.workflow.checks import run_checks

    checks = run_checks(load_settings(database_url=db, runs_dir=runs_dir))
    failed = [check.name for check in checks if check.status == "fail"]
    if as_json:
        print_json({"version": __version__, "machine": machine(), "checks": [check._asdict() for check in checks]})
    else:
        print_table(("what", "status", "detail", "fix"), [(c.name, c.status, c.detail, c.fix or None) for c in checks])
    if failed:
        note(f"to be fixed: {', '.join(failed)}")
        raise typer.Exit(1)
    note("all is well; next: cuarl train --tasks settings --difficulty easy")


@app.command(
    epilog="""\b
Examples:
  cuarl doctor coordinates
  cuarl doctor coordinates qwen2.5-vl --screen 1080x2400 --seen 672x1484
  cuarl doctor coordinates ui-tars-1.5 --screen 1920x1080 --device desktop --png seen.png"""
)
def coordinates(
    family: Annotated[
        list[str] | None, typer.Argument(help="Formats, or models whose format is known; else all formats.")
    ] = None,
    screen: Annotated[str, typer.Option(help="Width and height of the screen in pixels.")] = "1080x2400",
    device: Annotated[str, typer.Option(help="phone or desktop.")] = "phone",
    seen: Annotated[
        str | None, typer.Option(help="Size at which the model sees it; else what is usual in the family.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Draw what the model sees, and where its words point.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Prove that points survive the way from the screen to a model and back. Exit code 3 if they don't.

    Targets are drawn on a screen, the picture is shrunk as the model's is, and each target must lie where the format's
    words say, and be met where it was. A coordinate grid coarser than the screen may miss by half of its step.
    """
    from cuarl.terminal.coordinates import report

    raise typer.Exit(report(family or [], screen, device, seen, png, as_json=as_json))
