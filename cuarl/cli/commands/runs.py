"""``cuarl runs``: what was run, how far it has come, and away with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cuarl.errors import ConfigError
from cuarl.terminal.output import closing, confirm, note, print_json, print_table, print_text
from cuarl.terminal.results import percent
from cuarl.terminal.state import load_settings
from cuarl.workflow import episodes as parts
from cuarl.workflow import people

if TYPE_CHECKING:
    from cuarl.store import Store
    from cuarl.store.costs import Costs
    from cuarl.store.pages import Pages, RunLine

app = typer.Typer(no_args_is_help=True, epilog="\b\nStart with:\n  cuarl runs list\n  cuarl runs show latest")

Db = Annotated[
    str | None, typer.Option("--db", help="Database URL; else DATABASE_URL, POSTGRES_* or a file in the runs folder.")
]
RunsDir = Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Reference = Annotated[str, typer.Argument(help="Name or id of a run, a unique beginning of one, or latest.")]


@app.callback()
def runs() -> None:
    """Runs as the store has them: list them, look at one, remove some."""


@app.command("list", epilog="\b\nExamples:\n  cuarl runs list\n  cuarl runs list --status failed --json")
def list_runs(
    status: Annotated[
        str | None, typer.Option(help="Only running, completed, failed, cancelled or paused ones.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Only those with this in their name.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most lines.")] = 50,
    runs_dir: RunsDir = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""
    with parts.open_store(load_settings(database_url=db, runs_dir=runs_dir)) as store:
        found = _pages(store).run_lines(limit=limit, status=status, text=name)
    if as_json:
        print_json(found)
        return
    if not found:
        note("no runs like that" if status or name else "no runs yet")
    columns = ("run", "what", "status", "step", "success", "reward", "evaluated", "took")
    print_table(columns, [_row(line) for line in found], numeric={"step", "success", "reward", "evaluated", "took"})


def _row(line: RunLine) -> tuple[object, ...]:
    from cuarl.monitor.lines import number, span

    step = f"{line.step}/{line.total_steps}" if line.total_steps else line.step or None
    took = span(line.finished_at - line.started_at) if line.finished_at else None
    reward = None if line.reward is None else number(line.reward)
    return line.name, line.command, line.status, step, percent(line.success), reward, percent(line.evaluated), took


@app.command("show", epilog="\b\nExamples:\n  cuarl runs show\n  cuarl runs show settings --json")
def show(run: Reference = "latest", runs_dir: RunsDir = None, db: Db = None, as_json: Json = False) -> None:
    """Say what a run is, how far it has come, and what was measured of it."""
    from cuarl.monitor.lines import number, span
    from cuarl.store.costs import costs_of
    from cuarl.workflow.monitoring import prices_of

    settings = load_settings(database_url=db, runs_dir=runs_dir)
    with parts.open_store(settings) as store:
        pages = _pages(store)
        line = find(pages, run)
        record, evaluations = pages.runs_by_id([line.id])[0], people.evaluations(store, line.id)
        last = pages.at_steps(line.id, ["time/step_s"], before=None, limit=1)
        values = pages.values(line.id, next(iter(last))) if last else {}
        costs = costs_of(pages, record, prices_of(settings))
    if as_json:
        print_json({"run": record, "live": line.live, "evaluations": evaluations, "metrics": values, "costs": costs})
        return
    live = line.live.data if line.live else {}
    facts = [
        ("run", record.name),
        ("id", record.id),
        ("what", record.command),
        ("status", record.status),
        ("because", record.message or None),
        ("model", record.model),
        ("seed", record.seed),
        ("step", f"{record.step} of {record.total_steps}" if record.total_steps else None),
        ("now", line.live.phase if line.live else None),
        ("left", span(live["left_s"]) if live.get("left_s") is not None else None),
        ("took", span(record.finished_at - record.started_at) if record.finished_at else None),
        ("in", record.directory or None),
    ]
    facts += [(f"evaluated at {e.step}", _measured(e.metrics, e.suite)) for e in evaluations]
    facts += [
        (name, number(value)) for name, value in values.items() if name in ("episode/success_rate", "reward/mean")
    ]
    facts += _cost_facts(costs) if costs and costs.lines else []
    print_table(("what", "value"), [fact for fact in facts if fact[1] is not None])
    closing(
        f"{record.name}: {record.status}",
        where=record.directory or record.id,
        then=f"cuarl episodes {record.name} --failed",
    )


def _cost_facts(costs: Costs) -> list[tuple[str, str | None]]:
    from cuarl.monitor.lines import number, span

    each = f", {span(costs.device_s / costs.successes)} a success" if costs.successes else ""
    devices = [
        (f"{c.purpose} on {c.device}", f"{c.episodes} episode{'s' * (c.episodes != 1)}, {span(c.device_s)} of it")
        for c in costs.lines
    ]
    money = None if costs.money is None else number(costs.money)
    if money and costs.money is not None and costs.successes:
        money += f", {number(costs.money / costs.successes)} a success"
    return [
        *devices,
        ("device time", span(costs.device_s) + each),
        ("machine", f"{span(costs.machine_s)} on {costs.machine}"),
        ("tokens", f"{costs.tokens_in:,} in, {costs.tokens_out:,} out"),
        ("cost", money),
    ]


def _measured(found: Mapping[str, float], suite: str) -> str:
    low, high = percent(found.get("ci_low")), percent(found.get("ci_high"))
    return f"{percent(found.get('success_rate'))} ({low} to {high}, n = {found.get('n', 0):g}) on {suite}"


@app.command("rm", epilog="\b\nExamples:\n  cuarl runs rm settings-a\n  cuarl runs rm settings-a settings-b --yes")
def remove(
    run: Annotated[list[str], typer.Argument(help="Names or ids of runs, or unique beginnings.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    runs_dir: RunsDir = None,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Remove runs: what the store has of them, the screenshots that they alone refer to, and their folders."""
    from cuarl.run.directory import delete_folder
    from cuarl.store.deletion import delete_run

    settings = load_settings(database_url=db, runs_dir=runs_dir)
    with parts.open_store(settings) as store:
        pages = _pages(store)
        found = {line.id: line for line in (find(pages, name) for name in run)}
        confirm(f"this removes {', '.join(line.name for line in found.values())}, with all episodes", yes=yes)
        done = {}
        for record in pages.runs_by_id(list(found)):
            path = settings.runs_dir / record.name
            if path.is_dir():
                delete_folder(path, settings.runs_dir, record.id)
            done[record.name] = delete_run(store, record.id)
    if as_json:
        print_json(done)
        return
    for name, deleted in done.items():
        print_text(f"{name}: {deleted.episodes} episodes and {deleted.screenshots} screenshots removed")


def find(pages: Pages, reference: str) -> RunLine:
    """The run that somebody means. Raises ConfigError."""
    if reference == "latest":
        found = pages.run_lines(limit=1)
        if not found:
            raise ConfigError("there are no runs in the store yet", hint="cuarl train")
        return found[0]
    found = pages.runs_called(reference)
    if len(found) == 1:
        return found[0]
    what = f"{len(found)} runs begin so: {', '.join(line.name for line in found[:5])}" if found else "none begins so"
    raise ConfigError(f'"{reference}" is not a run in the store; {what}', hint="cuarl runs list")


def _pages(store: Store) -> Pages:
    from cuarl.store.pages import Pages

    return Pages(store.engine)
