"""``cuarl monitor``: watch runs."""

from __future__ import annotations

import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from cuarl.cli.commands import tokens
from cuarl.cli.complete import run_names
from cuarl.errors import ConfigError
from cuarl.monitor.console import ConsoleSink
from cuarl.monitor.lines import metrics_line
from cuarl.monitor.metric_names import METRICS, documented
from cuarl.monitor.tail import GOING_ON, Entry, Since, await_run, parse_since, tail
from cuarl.run import Run, find_run, list_runs
from cuarl.terminal.output import is_terminal, is_verbose, note, print_json, print_text
from cuarl.terminal.state import load_settings

app = typer.Typer(no_args_is_help=True, epilog="\b\nStart with:\n  cuarl monitor tail\n  cuarl monitor serve")
app.add_typer(tokens.app, name="tokens", help="Say who may report to the monitor.")


@app.callback()
def monitor() -> None:
    """Watch runs."""


@app.command(
    "tail",
    epilog="""\b
Examples:
  cuarl monitor tail
  cuarl monitor tail settings --since 10m
  cuarl monitor tail latest --metric 'eval/*' --metric reward/mean
  cuarl monitor tail --json --no-follow > metrics.jsonl""",
)
def tail_run(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Name, unique beginning of a name, path, or latest; unset means the newest, and on a terminal the "
            "next one, too, where that is over.",
            autocompletion=run_names,
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Begin 30s, 10m, 2h or 1d ago, at a step number, or at an ISO time.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Show these metrics (globs; repeatable) rather than the headline.")
    ] = None,
    follow: Annotated[bool, typer.Option(help="Go on until the run ends.")] = True,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Print what a run says, by default the newest, until it ends. Reads only, and works on finished runs."""
    begin = parse_since(since, time.time())
    shown = _Shown([_known(pattern) for pattern in metric or []], begin, as_json=as_json)
    folder = load_settings(runs_dir=runs_dir).runs_dir
    waiting = run is None and follow and is_terminal(sys.stdout)  # a script that names no run is not to wait for ever
    if not waiting or list_runs(folder):
        followed = Run(find_run(folder, run or "latest"))
        waiting = waiting and followed.status not in GOING_ON
        shown.all_of(followed, follow=follow)
    if waiting:
        note(f"waiting for the next run in {folder}; Ctrl-C ends it")
        shown.all_of(Run(await_run(folder)), follow=True)


@app.command(
    "serve",
    epilog="""\b
Examples:
  cuarl monitor serve
  cuarl monitor serve --port 9000 --db postgresql://user@host/cuarl --read-only
  CUARL_MONITOR_TOKEN=… cuarl monitor serve --host 0.0.0.0 --allow-host gpu.example --path-prefix /monitor""",
)
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs CUARL_MONITOR_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 3001,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Name that browsers may ask for besides this machine's own; repeatable.")
    ] = None,
    path_prefix: Annotated[str, typer.Option(help="Path that all addresses begin with, behind a proxy.")] = "",
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody overrule a verdict.")] = False,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")] = None,
    db: Annotated[str | None, typer.Option(help="Database URL; else DATABASE_URL, POSTGRES_* or a file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show runs in a browser: live, turn by turn, with curves, screenshots and verdicts. Ends with Ctrl-C."""
    from cuarl.web.listen import bind, require_web
    from cuarl.workflow.monitoring import Options, prices_of, serve_monitor

    require_web()
    settings = load_settings(database_url=db, runs_dir=runs_dir)
    token = settings.monitor_token.get_secret_value() if settings.monitor_token else None
    options = Options(
        host=host,
        hosts=tuple(allow_host or ()),
        prefix=path_prefix,
        read_only=read_only,
        token=token,
        prices=prices_of(settings),
    )
    sock = bind(host, port, token, what="the monitor", variable="CUARL_MONITOR_TOKEN")

    def say(url: str) -> None:
        if as_json:
            print_json({"event": "listening", "url": url}, line=True)
        else:
            note(f"the monitor is at {url}; Ctrl-C ends it")

    serve_monitor(settings, options, sock, say)


@app.command("send", epilog="\b\nExamples:\n  cuarl monitor send\n  cuarl monitor send settings-a")
def send(
    run: Annotated[
        str, typer.Argument(help="Name, unique beginning of a name, path, or latest.", autocompletion=run_names)
    ] = "latest",
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")] = None,
    db: Annotated[str | None, typer.Option(help="Database URL; else DATABASE_URL, POSTGRES_* or a file.")] = None,
) -> None:
    """Send what a run could not report to the monitor of MONITOR_BASE_URL while it was away."""
    from cuarl.workflow import episodes as parts
    from cuarl.workflow.reporting import check_monitor, page, send_rest

    settings = load_settings(database_url=db, runs_dir=runs_dir)
    check_monitor(settings.monitor_base_url or "", settings)
    folder = find_run(settings.runs_dir, run)
    with parts.open_store(settings) as store:
        number = send_rest(folder, settings, store.blobs)
    if number is None:
        note(f"{folder.name} has nothing to report: it was not started with --monitor-base-url")
    else:
        note(f"{folder.name}: all is told, and shown at {page(settings, number)}")


@app.command(
    "report",
    epilog="""\b
Examples:
  cuarl monitor report
  cuarl monitor report settings --out report --zip""",
)
def report(
    run: Annotated[str, typer.Argument(help="Name or id of a run, a unique beginning of one, or latest.")] = "latest",
    out: Annotated[Path | None, typer.Option(help="Folder to write to, which must be empty; else report-NAME.")] = None,
    pack: Annotated[bool, typer.Option("--zip", help="Pack the folder, and leave only the zip file.")] = False,
    runs_dir: Annotated[Path | None, typer.Option(help="Folder of the runs (CUARL_RUNS_DIR; else runs).")] = None,
    db: Annotated[str | None, typer.Option(help="Database URL; else DATABASE_URL, POSTGRES_* or a file.")] = None,
) -> None:
    """Write a run's pages as files that open from disk without a network, with all screenshots."""
    import shutil

    from cuarl.cli.commands.runs import find
    from cuarl.store.aside import whole_or_not_at_all
    from cuarl.store.pages import Pages
    from cuarl.web.listen import require_web
    from cuarl.workflow import episodes as parts
    from cuarl.workflow.monitoring import prices_of, write_report

    require_web()
    settings = load_settings(database_url=db, runs_dir=runs_dir)
    with parts.open_store(settings) as store:
        line = find(Pages(store.engine), run)
        folder = out or Path(f"report-{line.name}")
        with whole_or_not_at_all(folder) as aside:
            count = write_report(store, line.id, aside, prices_of(settings))
    written = folder / "index.html"
    if pack:
        written = Path(shutil.make_archive(str(folder), "zip", folder))
        shutil.rmtree(folder)
    note(f"{line.name}: {count} pages, beginning with {written}")


class _Shown:
    """Prints what runs say: lines for people or JSON lines, from a certain time or step on."""

    def __init__(self, patterns: list[str], begin: Since, *, as_json: bool) -> None:
        self._patterns, self._begin, self._as_json = patterns, begin, as_json

    def all_of(self, run: Run, *, follow: bool) -> None:
        """Print it until it ends, or what there is so far."""
        note(f"{run.name} ({run.status})")
        lines = ConsoleSink(lambda text: print_text(text, flush=True), detail=is_verbose(), trend=True)
        for entry in tail(run, follow=follow):
            if self._begin.admits(entry):
                self._one(entry, lines)
            elif entry.event == "start":  # it says how many steps there are
                lines.event(entry.event, entry.values)
        note(f"{run.name} is {run.status}")

    def _one(self, entry: Entry, lines: ConsoleSink) -> None:
        patterns = self._patterns
        if self._as_json:
            kept = {key for key in entry.values if not patterns or any(fnmatchcase(key, p) for p in patterns)}
            if not patterns or (kept and entry.event is None):
                print_json(entry.record if not patterns else _only(entry.record, kept), line=True)
        elif entry.event is not None:
            if not patterns:
                lines.event(entry.event, {**({} if entry.step is None else {"step": entry.step}), **entry.values})
        elif not patterns:
            lines.metrics(entry.step or 0, entry.values)
        elif text := metrics_line(entry.step or 0, entry.values, patterns):
            print_text(text, flush=True)


def _only(record: dict[str, object], kept: set[str]) -> dict[str, object]:
    return {key: value for key, value in record.items() if key in kept or key in ("step", "time", "event")}


def _known(pattern: str) -> str:
    """A pattern that could match something; a mistyped name would otherwise wait for ever."""
    from cuarl.config.load import did_you_mean

    plain = not set(pattern) & set("*?[")
    if plain and documented(pattern) is None:
        raise ConfigError(f'unknown metric "{pattern}"{did_you_mean(pattern, METRICS)}', where="--metric")
    return pattern
