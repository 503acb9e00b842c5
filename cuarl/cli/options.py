"""Give a command the options of an experiment: ``-c``, ``--preset``, ``-s`` and one flag per field.

The flags and their panels are made from ``config.schema``, so there is one source of truth; their help is read from it
when it is shown (``cli.help``), so such a command is a ``HelpCommand``. It takes a ``Request`` as its first parameter::

    @app.command(cls=HelpCommand)
    @experiment_options(TaskFields, "model_name", resumable=True)
    def train(request: Request, processes: int = 1) -> None: ...
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from cuarl.cli.complete import COMPLETIONS, assignments, preset_names, run_names, types_of
from cuarl.cli.help import LAST as HELP_PANEL
from cuarl.cli.help import help_all
from cuarl.config.fields import Fields
from cuarl.config.keys import Key, flag_of, keys
from cuarl.config.kinds import kind_of
from cuarl.config.load import presets, resolve
from cuarl.config.show import as_json as config_as_json
from cuarl.config.show import as_yaml
from cuarl.config.unions import UNIONS
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.terminal.output import print_text
from cuarl.terminal.state import load_settings
from cuarl.terminal.watcher import TerminalWatcher
from cuarl.workflow.experiment import Experiment, run_to_resume

CONFIG_PANEL = "Configuration"
RUN_PANEL = "Run"
REPORTING = ("monitor_base_url", "project_id", "project_token")
"""Options that are settings, too: where a run is reported."""

Command = Callable[..., None]
Follows = Callable[[Mapping[str, Any], Settings], Path | None]
Complete = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Experiment):
    """An experiment as a command line asks for it."""

    dry_run: bool = False
    """Check everything and print the plan, but start nothing and write nothing."""
    json: bool = False
    """Standard output is for JSON only."""
    db: str | None = None
    runs_dir: Path | None = None


def experiment_options(
    *wanted: type[Fields] | str,
    resumable: bool = False,
    follows: Follows | None = None,
    env: Callable[[Mapping[str, Any]], str] | None = None,
) -> Callable[[Command], Command]:
    """Decorate a command so that it takes the flags of these panels and fields, and is called with the ``Request``.

    ``resumable`` adds ``--name``, ``--overwrite``, ``--accept-changes`` and ``--resume``, whose run's configuration is
    the first file; ``follows`` may say, by the command's own options, that another folder is gone on with, and ``env``
    which environment is meant where none is named.
    ``--print-config`` is dealt with here: it prints the resolved configuration and ends the command.
    """
    fields = [_flag(key) for key in chosen(wanted)]

    def decorate(command: Command) -> Command:
        first, *own = inspect.signature(command).parameters.values()
        hints = get_type_hints(command, include_extras=True)
        shared = [*_run_options(resumable), *_config_options()]

        def wrapper(**options: Any) -> None:
            options.pop("help_all")
            flags = {field.name: options.pop(field.name) for field in fields}
            given = {name: value for name, value in flags.items() if value is not None}
            if env is not None:
                given = {"env": env(options), **given}
            taken = {one.name: options.pop(one.name) for one in shared}
            request = _request(given, taken, partial(follows, options) if follows is not None else None)
            command(**{first.name: request}, **options)

        mine = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
        keyword = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in [*mine, *shared, *fields, _help_option()]
        ]
        # Typer reads a command's options off its signature
        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        wrapper.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword}
        return wrapper

    return decorate


def _request(
    flags: Mapping[str, Any], shared: Mapping[str, Any], follows: Callable[[Settings], Path | None] | None
) -> Request:
    files, as_json = list(shared["config"] or []), bool(shared["json"])
    name, overwrite, resume = shared.get("name"), bool(shared.get("overwrite")), None
    if shared.get("accept_changes") and not shared.get("resume"):
        raise ConfigError("--accept-changes goes with --resume", hint="--resume NAME --accept-changes, or leave it out")
    places = {name: shared.get(name) for name in REPORTING}
    settings = load_settings(database_url=shared.get("db"), runs_dir=shared.get("runs_dir"), **places)
    if follows is not None and not shared["print_config"] and not shared["dry_run"]:
        resume = follows(settings)
    if resume is None and shared.get("resume"):
        resume = run_to_resume(shared["resume"], settings, name=name, overwrite=overwrite)
    if resume is not None:
        files.insert(0, resume / "config.json")
    resolved = resolve(files=files, preset=shared["preset"], flags=flags, sets=shared["set"] or [])
    if shared["print_config"]:
        print_text((config_as_json(resolved.config) if as_json else as_yaml(resolved)).rstrip("\n"))
        raise typer.Exit
    return Request(
        resolved=resolved,
        settings=settings,
        watcher=TerminalWatcher(json=as_json),
        name=name,
        overwrite=overwrite,
        resume=resume,
        accept_changes=bool(shared.get("accept_changes")),
        command=("cuarl", *sys.argv[1:]),
        dry_run=shared["dry_run"],
        json=as_json,
        db=shared.get("db"),
        runs_dir=shared.get("runs_dir"),
    )


def _config_options() -> list[inspect.Parameter]:
    names = ", ".join(presets())
    return [
        _shared("config", list[Path] | None, "-c", help="YAML, JSON or TOML file; repeatable, later ones win."),
        _shared("preset", str | None, help=f"Start from a preset; there are: {names}.", complete=preset_names),
        _shared(
            "set",
            list[str] | None,
            "-s",
            help="Any field as key=value; repeatable, wins over all else.",
            complete=assignments,
        ),
        _shared("print_config", bool, help="Print each value and its source, and stop."),
        _shared("dry_run", bool, help="Check everything, print the plan, and stop."),
        _shared("json", bool, help="Print JSON on standard output."),
    ]


def _help_option() -> inspect.Parameter:
    info = typer.Option(
        "--help-all", callback=help_all, is_eager=True, rich_help_panel=HELP_PANEL, help="All options, in full"
    )
    return _parameter("help_all", Annotated[bool, info], False)


def _run_options(resumable: bool) -> list[inspect.Parameter]:
    def option(name: str, annotation: Any, help: str, complete: Complete | None = None) -> inspect.Parameter:
        return _shared(name, annotation, help=help, panel=RUN_PANEL, complete=complete)

    named = [
        option("name", str | None, "Name of the run; else one is made up."),
        option("overwrite", bool, "Delete the run of that name first."),
        option("resume", str | None, "Go on with a run: its name, unique beginning or path, or latest.", run_names),
        option(
            "accept_changes", bool, "With --resume: resume although tasks or the reward's code are not what they were."
        ),
        option("monitor_base_url", str | None, "Training monitor elsewhere to report to (MONITOR_BASE_URL)."),
        option("project_id", str | None, "Project there (MONITOR_PROJECT_ID)."),
        option("project_token", str | None, "Its token; better as MONITOR_PROJECT_TOKEN, which nobody else can see."),
    ]
    return [
        *(named if resumable else []),
        option("runs_dir", Path | None, "Folder of the runs (CUARL_RUNS_DIR; else runs)."),
        option("db", str | None, "Database URL (DATABASE_URL or POSTGRES_*; else a file in the folder of the runs)."),
    ]


def _shared(
    name: str, annotation: Any, *short: str, help: str, panel: str = CONFIG_PANEL, complete: Complete | None = None
) -> inspect.Parameter:
    info = typer.Option(
        flag_of(name), *short, help=help, rich_help_panel=panel, show_default=False, autocompletion=complete
    )
    return _parameter(name, Annotated[annotation, info], False if annotation is bool else None)


def chosen(wanted: Sequence[type[Fields] | str]) -> list[Key]:
    """The keys of whole panels, with the options of the records in them, and single ones by name; each once."""
    found: dict[str, Key] = {}
    for one in wanted:
        for key in keys().values():
            if one == key.name if isinstance(one, str) else key.path.partition(".")[0] in one.model_fields:
                found[key.name] = key
    return list(found.values())


def _flag(key: Key) -> inspect.Parameter:
    kind = kind_of(key.field)
    # a list is given with commas between, too, and checked with the rest of the configuration
    annotation: Any = list[kind.base] if kind.many else Literal[kind.choices] if kind.choices else kind.base  # type: ignore[name-defined]
    info = typer.Option(
        f"{key.flag}/--no-{key.flag.removeprefix('--')}" if kind.base is bool else key.flag,
        rich_help_panel=key.panel,
        show_default=False,
        autocompletion=COMPLETIONS.get(key.name) or (types_of(key.path) if key.path in UNIONS else None),
    )
    # unset until given: the default is the schema's, below files and preset
    return _parameter(key.name, Annotated[annotation | None, info], None)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
