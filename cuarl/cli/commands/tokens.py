"""``cuarl monitor tokens``: who may report to the monitor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cuarl.terminal.output import note, print_json, print_table, print_text
from cuarl.terminal.state import load_settings

app = typer.Typer(no_args_is_help=True, epilog="\b\nStart with:\n  cuarl monitor tokens create PROJECT")

Db = Annotated[str | None, typer.Option("--db", help="Database URL; else DATABASE_URL, POSTGRES_* or a file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def tokens() -> None:
    """Say who may report to the monitor: trainers of a project, by a token."""


@app.command("create", epilog="\b\nExample:\n  cuarl monitor tokens create phones")
def create_token(
    project: Annotated[str, typer.Argument(help="Project whose trainers may report with it.")],
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it. It is shown this once, since only a digest of it is stored."""
    from cuarl.workflow.projects import tokens_of

    with tokens_of(load_settings(database_url=db)) as known:
        record, secret = known.create(project)
    if as_json:
        print_json({**record.model_dump(), "token": secret})
    else:
        print_text(secret)
        note(f"{record.id}: for project {project}; it is not shown again")


@app.command("list", epilog="\b\nExample:\n  cuarl monitor tokens list")
def list_tokens(db: Db = None, as_json: Json = False) -> None:
    """Show the tokens of all projects, without their secrets."""
    from cuarl.workflow.projects import tokens_of

    with tokens_of(load_settings(database_url=db)) as known:
        found = known.all()
    if as_json:
        print_json(found)
        return
    rows = [(one.id, one.project, _moment(one.created_at), _moment(one.revoked_at)) for one in found]
    print_table(("token", "project", "made", "revoked"), rows)


@app.command("revoke", epilog="\b\nExample:\n  cuarl monitor tokens revoke token-0199c0ffee00-5d1f2a3b")
def revoke_token(
    token: Annotated[str, typer.Argument(help="Id of the token, as the list shows it.")], db: Db = None
) -> None:
    """Let nobody report with a token any more. What was reported stays."""
    from cuarl.workflow.projects import tokens_of

    with tokens_of(load_settings(database_url=db)) as known:
        revoked = known.revoke(token)
    note(f"{revoked.id} of project {revoked.project} is revoked")


def _moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(sep=" ", timespec="seconds")
