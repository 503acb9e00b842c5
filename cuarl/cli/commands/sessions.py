"""``cuarl sessions``: what a killed process left behind."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import anyio
import typer

from cuarl.cli.commands import session_server
from cuarl.env.leases import Lease, Ledger, sweep
from cuarl.errors import CuarlError
from cuarl.run.owner import State
from cuarl.settings import Settings
from cuarl.terminal.output import confirm, note, print_json, print_table
from cuarl.terminal.state import load_settings

app = typer.Typer(no_args_is_help=True, epilog="\b\nStart with:\n  cuarl sessions list\n  cuarl sessions sweep")

Folder = Annotated[
    Path | None, typer.Option("--sessions-dir", help="Folder of the notes; else CUARL_SESSIONS_DIR or the user's.")
]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Only of this kind, such as display (repeatable).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Swept(NamedTuple):
    """What became of one session."""

    kind: str
    id: str
    state: State
    outcome: str
    """``swept``, ``would be swept``, ``kept`` or ``failed``."""
    error: str | None = None


@app.callback()
def sessions() -> None:
    """Browsers, displays, boxes, pods and the like that runs hold, and those that a killed run left behind.

    A session is "live" while the process that made it is there, and "orphaned" once that is gone. One of another
    machine or container is "unknown": it can't be seen from here whether its owner lives.
    """


@app.command(
    "list",
    short_help="List sessions in use or left behind, oldest first.",
    epilog="\b\nExamples:\n  cuarl sessions list\n  cuarl sessions list --kind display --json",
)
def list_sessions(kind: Kinds = None, sessions_dir: Folder = None, as_json: Json = False) -> None:
    """List the sessions that are in use or were left behind, oldest first."""
    ledger, leases = _leases(load_settings(sessions_dir=sessions_dir), kind)
    if as_json:
        print_json([{**lease.record.model_dump(mode="json"), "state": lease.state} for lease in leases])
        return
    if not leases:
        note(f"no sessions in {ledger.folder}")
        return
    rows = [(lease.kind, lease.id, lease.state, _owner(lease), _age(lease), _detail(lease)) for lease in leases]
    orphaned = sum(row[2] == "orphaned" for row in rows)
    print_table(
        ("kind", "id", "state", "owner", "age", "detail"),
        rows,
        footer=f"{len(rows)} sessions, {orphaned} orphaned" + ("; next: cuarl sessions sweep" if orphaned else ""),
    )


@app.command(
    "sweep",
    epilog="""\b
Examples:
  cuarl sessions sweep
  cuarl sessions sweep --dry-run
  cuarl sessions sweep --all --kind box --yes""",
)
def sweep_sessions(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are in use or of unknown owners.")] = False,
    kind: Kinds = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be ended, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    sessions_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """End the sessions whose owner is gone. Exits with 1 if one of them could not be ended."""
    settings = load_settings(sessions_dir=sessions_dir)
    _, leases = _leases(settings, kind)
    states = {lease.path: lease.state for lease in leases}
    chosen = [lease for lease in leases if everything or states[lease.path] == "orphaned"]
    spared = [lease for lease in chosen if states[lease.path] != "orphaned"]
    if spared and not dry_run:
        confirm(f"this ends {len(spared)} sessions that may be in use", yes=yes)
    results = [Swept(lease.kind, lease.id, states[lease.path], "kept") for lease in leases if lease not in chosen]
    for lease in chosen:
        outcome = ("would be swept", None) if dry_run else anyio.run(_end, lease, settings)
        results.append(Swept(lease.kind, lease.id, states[lease.path], *outcome))
    _report(results, as_json=as_json)


app.command("serve", short_help="Serve one device as a session, as a pod does.", epilog=session_server.EPILOG)(
    session_server.serve
)


async def _end(lease: Lease, settings: Settings) -> tuple[str, str | None]:
    """One that can't be ended must not keep the others from being ended."""
    try:
        await sweep(lease, settings)
    except CuarlError as error:
        return "failed", str(error)
    return "swept", None


def _report(results: list[Swept], *, as_json: bool) -> None:
    if as_json:
        print_json([result._asdict() for result in results])
    elif results:
        print_table(Swept._fields, results)
    counts = {name: sum(result.outcome == name for result in results) for name in ("swept", "would be swept", "failed")}
    kept = sum(result.outcome == "kept" for result in results)
    said = [f"{count} {name}" for name, count in counts.items() if count] or ["nothing to sweep"]
    note(", ".join([*said, *([f"{kept} kept (see --all)"] if kept else [])]))
    if counts["failed"]:
        raise typer.Exit(1)


def _leases(settings: Settings, kinds: list[str] | None) -> tuple[Ledger, list[Lease]]:
    ledger = Ledger(settings.sessions_folder)
    return ledger, [lease for lease in ledger.leases() if not kinds or lease.kind in kinds]


def _owner(lease: Lease) -> str:
    return f"{lease.record.owner.pid}@{lease.record.owner.host}"


def _age(lease: Lease) -> str:
    seconds = (datetime.now(UTC) - datetime.fromisoformat(lease.record.made_at)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(max(0, seconds))}s"


def _detail(lease: Lease) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(lease.detail.items()))
