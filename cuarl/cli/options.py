"""Give a command the options of an experiment: ``-c``, ``--preset``, ``-s`` and one flag per field.

The flags, their help and their panels are made from ``config.schema``, so there is one source of truth. A command takes
an ``Experiment`` as its first parameter::

    @app.command()
    @experiment_options(TaskFields, ModelFields)
    def train(experiment: Experiment, resume: bool = False) -> None: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from pydantic.fields import FieldInfo

from cuarl.cli.output import print_text
from cuarl.config.kinds import kind_of
from cuarl.config.load import Resolved, flag_of, presets, resolve
from cuarl.config.schema import ExperimentConfig, Fields
from cuarl.config.show import as_json, as_yaml

CONFIG_PANEL = "Configuration"


@dataclass(frozen=True, slots=True)
class Experiment:
    """The experiment that a command line asks for."""

    resolved: Resolved
    dry_run: bool = False
    """Check everything and print the plan, but start nothing and write nothing."""
    json: bool = False
    """Standard output is for JSON only."""

    @property
    def config(self) -> ExperimentConfig:
        """The resolved fields."""
        return self.resolved.config


def experiment_options(*panels: type[Fields]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command so that it takes the flags of these panels and is called with the ``Experiment``.

    ``--print-config`` is dealt with here: it prints the resolved configuration and ends the command.
    """
    names = [name for panel in panels for name in panel.model_fields]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        first, *own = inspect.signature(command).parameters.values()
        hints = get_type_hints(command, include_extras=True)

        def wrapper(**options: Any) -> None:
            flags = {name: options.pop(name) for name in names}
            experiment = _experiment({name: value for name, value in flags.items() if value is not None}, options)
            command(**{first.name: experiment}, **options)

        fields = [_flag(name, panel) for panel in panels for name in panel.model_fields]
        mine = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
        parameters = [*mine, *_common(), *fields]
        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
        wrapper.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword}
        return wrapper

    return decorate


def _experiment(flags: Mapping[str, Any], options: dict[str, Any]) -> Experiment:
    files, preset, sets = options.pop("config") or [], options.pop("preset"), options.pop("set") or []
    wants_json, dry_run, print_config = options.pop("json"), options.pop("dry_run"), options.pop("print_config")
    resolved = resolve(files=files, preset=preset, flags=flags, sets=sets)
    if print_config:
        print_text((as_json(resolved.config) if wants_json else as_yaml(resolved)).rstrip("\n"))
        raise typer.Exit
    return Experiment(resolved, dry_run=dry_run, json=wants_json)


def _common() -> list[inspect.Parameter]:
    def option(name: str, annotation: Any, *declarations: str, help: str, default: Any = None) -> inspect.Parameter:
        info = typer.Option(*declarations, help=help, rich_help_panel=CONFIG_PANEL, show_default=False)
        return _parameter(name, Annotated[annotation, info], default)

    return [
        option("config", list[Path] | None, "--config", "-c", help="YAML, JSON or TOML file; later ones win."),
        option("preset", str | None, "--preset", help=f"Start from a preset: {', '.join(presets())}."),
        option("set", list[str] | None, "--set", "-s", help="Any field as key=value; wins over all else."),
        option(
            "print_config", bool, "--print-config", help="Print each value and its source, and stop.", default=False
        ),
        option("dry_run", bool, "--dry-run", help="Check everything, print the plan, and stop.", default=False),
        option("json", bool, "--json", help="Print JSON on standard output.", default=False),
    ]


def _flag(name: str, panel: type[Fields]) -> inspect.Parameter:
    field = panel.model_fields[name]
    kind = kind_of(field)
    annotation: Any = Literal[kind.choices] if kind.choices else kind.base
    annotation = list[annotation] if kind.many else annotation
    flag = flag_of(name)
    info = typer.Option(
        f"{flag}/--no-{flag.removeprefix('--')}" if kind.base is bool else flag,
        help=_help(field), rich_help_panel=panel.panel, show_default=False,
    )  # fmt: skip
    return _parameter(name, Annotated[annotation | None, info], None)


def _help(field: FieldInfo) -> str:
    text = " ".join((field.description or "").split())
    unset = field.default is None or field.default == ()
    return (
        text
        if unset
        else f"{text} (default: {str(field.default).lower() if isinstance(field.default, bool) else field.default})"
    )


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
