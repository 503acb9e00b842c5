"""``cuarl db``: look after the store of trajectories."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cuarl.errors import ConfigError, StoreError
from cuarl.terminal.output import closing, confirm, note, print_json, print_table, print_text
from cuarl.terminal.state import load_settings

if TYPE_CHECKING:
    from cuarl.settings import Settings
    from cuarl.store import Store
    from cuarl.store.migrate import Plan

app = typer.Typer(no_args_is_help=True, epilog="\b\nStart with:\n  cuarl db status\n  cuarl db export backup")

Db = Annotated[str | None, typer.Option("--db", help="Database URL; else DATABASE_URL, POSTGRES_* or runs/cuarl.db.")]
BlobsUrl = Annotated[str | None, typer.Option("--blobs", help="Folder or fsspec URL of the screenshots.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


@app.callback()
def db() -> None:
    """Look after the database of runs and trajectories.

    It is a SQLite file in the folder of the runs unless DATABASE_URL or POSTGRES_HOST says otherwise. An empty SQLite
    file is set up by itself; any other change of the schema is made by "cuarl db migrate" alone.
    """


@app.command(
    short_help="Show the database, its version, and how much is in it.",
    epilog="\b\nExamples:\n  cuarl db status\n  cuarl db status --json",
)
def status(db: Db = None, blobs: BlobsUrl = None, as_json: Json = False) -> None:
    """Show which database is used, the version of its schema, and how much is in it."""
    from cuarl.store.status import status as look_at

    settings = _settings(db, blobs)
    found = look_at(settings.db_url, settings.blobs_url, settings.runs_dir)
    if as_json:
        print_json(found)
        return
    facts = [
        ("database", found.url),
        ("schema", f"{found.revision or 'none'} ({found.schema}, this program needs {found.newest})"),
        ("screenshots", found.blobs),
        *(() if found.wal is None else (("write-ahead log", "in force" if found.wal else "NOT in force"),)),
        *(("waiting in the spool", path) for path in found.spooled),
        *((name, f"about {count:,}" if name in found.estimated else count) for name, count in found.counts.items()),
    ]
    print_table(("what", "value"), facts)
    if found.pending:
        note("next: cuarl db migrate")


@app.command(
    epilog="""\b
Examples:
  cuarl db migrate
  cuarl db migrate --dry-run
  cuarl db migrate --to 0001 --force
  cuarl db migrate --sql > upgrade.sql"""
)
def migrate(
    to: Annotated[str, typer.Option(help="Revision to go to, up or down; head is the newest, base is empty.")] = "head",
    sql: Annotated[bool, typer.Option("--sql", help="Print the SQL instead of running it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Go down even if rows are lost.")] = False,
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Bring the database's schema to a revision. A SQLite file is copied first; others that migrate are waited for."""
    from cuarl.store import migrate as migrations

    url = _settings(db).db_url
    if sql:
        print_text(migrations.migration_sql(url, to).rstrip("\n"))
        return
    done = migrations.plan(url, to) if dry_run else migrations.migrate(url, to, force=force)
    if as_json:
        print_json(done)
    else:
        print_text(_told(done, dry_run=dry_run))


def _told(done: Plan, *, dry_run: bool) -> str:
    if done.direction == "none":
        return f"nothing to do: the database is at {done.target}"
    lines = [f"{'would go' if dry_run else 'went'} {done.direction} from {done.start} to {done.target}"]
    lines += [f"  {step}" for step in done.steps]
    if done.stamped:
        lines.append(f"  the database had no version; its tables are those of {done.start}")
    if done.losses:
        lost = ", ".join(f"{count} {what}" for what, count in done.losses.items())
        lines.append(f"  {'would lose' if dry_run else 'lost'}: {lost}")
    if done.copied_to:
        lines.append(f"  copy from before: {done.copied_to}")
    return "\n".join(lines)


@app.command(
    short_help="Check the schema, rows against each other, and pictures.",
    epilog="\b\nExamples:\n  cuarl db check\n  cuarl db check --deep --json",
)
def check(
    deep: Annotated[bool, typer.Option("--deep", help="Decode every screenshot and load every episode, too.")] = False,
    db: Db = None,
    blobs: BlobsUrl = None,
    as_json: Json = False,
) -> None:
    """Compare the schema with the program, rows with each other, and rows with the screenshots. Exit 1 on damage."""
    from cuarl.store.check import check as inspect_store

    with _open(_settings(db, blobs)) as store:
        report = inspect_store(store, deep=deep)
    if as_json:
        print_json(report)
    else:
        for problem in report.problems:
            print_text(problem)
        note(
            f"{report.counts.get('episodes', 'no readable')} episodes, {report.screenshots} screenshots; "
            f"{report.unused_screenshots} stored screenshots belong to no episode"
        )
    if report.problems:
        hint = "cuarl db salvage sound.db" if report.damaged else "cuarl db export FOLDER"
        raise StoreError(f"the store has problems: {len(report.problems)}", hint=hint)
    if not as_json:
        print_text("the store is sound")


@app.command(
    short_help="Write episodes to a folder: a backup, a data set, or conversations.",
    epilog="""\b
Examples:
  cuarl db export backup
  cuarl db export settings-run --run settings-a --no-images
  cuarl db export shared --format dataset --redact faces.py:blur --push-to-hub ann/phone-episodes
  cuarl db export chats --format trl --run settings-a --renderer-name qwen3-vl""",
)
def export(
    folder: Annotated[Path, typer.Argument(help="Folder to write; must be empty or new.")],
    format: Annotated[
        Literal["backup", "dataset", "trl", "llama-factory"],
        typer.Option(
            help="backup: everything as JSON lines and pictures (and Parquet with pyarrow). dataset: Parquet with "
            "pictures, as Hugging Face datasets loads it. trl, llama-factory: conversations to fine-tune on."
        ),
    ] = "backup",
    run: Annotated[str | None, typer.Option(help="This run only: its name, its id, or latest.")] = None,
    images: Annotated[bool, typer.Option(help="Copy the screenshots, too.")] = True,
    redact: Annotated[
        str | None,
        typer.Option(
            help="Function that changes each screenshot (package.module:name or file.py:name): uint8 array in, one out."
        ),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Conversations of episodes that failed, too.")] = False,
    renderer_name: Annotated[
        str | None,
        typer.Option(help="Family in whose words conversations say what scripted agents did, e.g. qwen3-vl."),
    ] = None,
    push_to_hub: Annotated[
        str | None, typer.Option(metavar="USER/NAME", help="Put it on a model hub, too; private.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see what is pushed.")] = False,
    db: Db = None,
    blobs: BlobsUrl = None,
    as_json: Json = False,
) -> None:
    """Write episodes to a folder, whole or not at all.

    A backup and a data set are read by "cuarl db import" again, to equal episodes. Screenshots show whatever was on the
    device: look at them, or redact them, before you give an export away.
    """
    from cuarl.store.aside import place_for
    from cuarl.store.url import require_database
    from cuarl.terminal.exports import show_export
    from cuarl.workflow.exporting import Choice
    from cuarl.workflow.exporting import export as write
    from cuarl.workflow.hub import push

    settings = _settings(db, blobs)
    choice = Choice(
        format=format,
        run=run,
        images=images,
        redact=redact,
        failed=failed,
        renderer=renderer_name,
        hub=push_to_hub,
        public=public,
    )
    choice.check()
    place_for(folder)
    require_database(settings.db_url)
    with _open(settings) as store:
        done = write(store, folder, choice)
    address = push(folder, push_to_hub, public=public) if push_to_hub else None
    if as_json:
        print_json({**asdict(done), "pushed_to": address})
    else:
        show_export(done, address)


@app.command("import", epilog="\b\nExample:\n  cuarl db import backup --db sqlite:///runs/copy.db")
def import_(
    folder: Annotated[Path, typer.Argument(help="Folder that db export has written.")],
    db: Db = None,
    blobs: BlobsUrl = None,
    as_json: Json = False,
) -> None:
    """Add a backup or a data set to the store. What is there already stays, so it can be repeated."""
    from cuarl.store.imports import check_export, import_store

    check_export(folder)
    with _open(_settings(db, blobs)) as store:
        done = import_store(store, folder, at=time.time())
    if as_json:
        print_json(done)
    else:
        print_table(("file", "new"), list(done.counts.items()), numeric=("new",))
        note("next: cuarl db check")


@app.command(
    short_help="Copy what is readable of a damaged SQLite file.",
    epilog="\b\nExamples:\n  cuarl db salvage runs/sound.db\n  cuarl db salvage sound.db --db sqlite:///damaged.db",
)
def salvage(
    file: Annotated[Path, typer.Argument(help="SQLite file to write; must not exist.")],
    db: Db = None,
    as_json: Json = False,
) -> None:
    """Copy what can still be read of a damaged SQLite file into a new one: whole episodes, and nothing that dangles.

    The damaged file is not touched. Screenshots are files of their own, and stay where they are.
    """
    from cuarl.store.salvage import salvage as copy_readable

    settings = _settings(db)
    done = copy_readable(settings.db_url, file)
    if as_json:
        print_json(done)
        return
    rows = [(name, n, done.left_out.get(name), done.unreadable.get(name)) for name, n in done.copied.items()]
    columns = ("table", "copied", "left out", "unreadable at most")
    print_table(columns, rows, numeric=set(columns[1:]))
    lost = done.left_out.get("episodes")
    result = f"salvaged {done.copied['episodes']} episodes" + (f"; {lost} are not whole any more" if lost else "")
    closing(result, where=file, then=f"cuarl db check --deep --db sqlite:///{file} --blobs {blobs_of(settings)}")


@app.command(
    short_help="Delete runs, and the screenshots that they alone have.",
    epilog="\b\nExamples:\n  cuarl db delete settings-a\n  cuarl db delete 3f2a9c41d0e7b856 --yes",
)
def delete(
    runs: Annotated[list[str], typer.Argument(help="Names or ids of runs, as the store has them.")],
    yes: Yes = False,
    db: Db = None,
    blobs: BlobsUrl = None,
    as_json: Json = False,
) -> None:
    """Delete all that runs have recorded, and the screenshots that they alone refer to. Their folders stay."""
    from cuarl.store.deletion import delete_run

    with _open(_settings(db, blobs)) as store:
        known = store.runs()
        found = {run.id: run for name in runs for run in known if name in (run.id, run.name)}
        for name in runs:
            if not any(name in (run.id, run.name) for run in found.values()):
                raise ConfigError(f'there is no run "{name}" in the store', hint="cuarl db status")
        running = [run.name for run in found.values() if run.status == "running"]
        also = f" ({', '.join(running)} may be under way)" if running else ""
        confirm(f"this deletes {len(found)} runs and their episodes{also}", yes=yes)
        done = {run_id: delete_run(store, run_id) for run_id in found}
    if as_json:
        print_json(done)
        return
    for run_id, deleted in done.items():
        print_text(f"{found[run_id].name}: {deleted.episodes} episodes and {deleted.screenshots} screenshots deleted")
        if deleted.kept:
            note(f"{deleted.kept} screenshots are kept, since {deleted.because}; later: cuarl db prune")


@app.command(
    short_help="Remove screenshots that belong to no episode.",
    epilog="\b\nExample:\n  cuarl db prune",
)
def prune(db: Db = None, blobs: BlobsUrl = None, as_json: Json = False) -> None:
    """Remove screenshots that no row refers to, unless somebody may be about to refer to them."""
    from cuarl.store.deletion import prune as remove_unused

    with _open(_settings(db, blobs)) as store:
        done = remove_unused(store)
    if as_json:
        print_json(done)
        return
    print_text(f"{done.screenshots} screenshots removed")
    if done.kept:
        note(f"{done.kept} are kept, since {done.because}")


@app.command(
    short_help="Drop all tables of the store and make them anew.",
    epilog="""\b
Examples:
  cuarl db rebuild --yes
  cuarl db rebuild --from backup --yes""",
)
def rebuild(
    source: Annotated[Path | None, typer.Option("--from", help="Export to fill the new tables from.")] = None,
    yes: Yes = False,
    db: Db = None,
    blobs: BlobsUrl = None,
) -> None:
    """Drop all tables of the store, whatever their version, and make them anew. A SQLite file is copied first."""
    from cuarl.store.imports import check_export, import_store
    from cuarl.store.rebuild import rebuild as start_over
    from cuarl.store.url import masked

    settings = _settings(db, blobs)
    if source is not None:
        check_export(source)  # before anything is dropped
    confirm(f"this drops all runs and episodes in {masked(settings.db_url)}", yes=yes)
    copied = start_over(settings.db_url)
    if copied:
        note(f"copy from before: {copied}")
    if source is not None:
        with _open(settings) as store:
            import_store(store, source, at=time.time())
    print_text("the database is rebuilt" + (f" from {source}" if source else ", and empty"))


def blobs_of(settings: Settings) -> str:
    """Where the screenshots are."""
    from cuarl.store.url import default_blobs_url, parse_url

    return settings.blobs_url or default_blobs_url(parse_url(settings.db_url), settings.runs_dir)


def _settings(db: str | None, blobs: str | None = None) -> Settings:
    return load_settings(database_url=db, blobs_url=blobs)


def _open(settings: Settings) -> Store:
    from cuarl.store import Store

    return Store.open(settings.db_url, settings.blobs_url, runs_dir=settings.runs_dir)
