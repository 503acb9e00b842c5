"""``cuarl config``: show configurations, their fields and the shipped presets."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from cuarl.cli.complete import preset_names
from cuarl.cli.output import print_json, print_table, print_text
from cuarl.config.kinds import kind_of
from cuarl.config.load import FIELDS, did_you_mean, presets, resolve
from cuarl.config.schema import PANELS, ExperimentConfig
from cuarl.config.show import as_json, as_yaml
from cuarl.errors import ConfigError

app = typer.Typer(no_args_is_help=True)


@app.callback()
def config() -> None:
    """Show configurations, their fields and the shipped presets.

    What holds, first to last: flags, files from right to left, the preset, the defaults. Experiment fields are never
    read from the environment.
    """


@app.command(
    short_help="Print a configuration as a file for -c.",
    epilog="""\b
Examples:
  cuarl config show qwen3-vl-lora > mine.yaml
  cuarl config show -c mine.yaml -s group_size=16
  cuarl config show --keys learning_rate,clip_*""",
)
def show(
    preset: Annotated[
        str | None, typer.Argument(help="A shipped preset; without one, the defaults.", autocompletion=preset_names)
    ] = None,
    config: Annotated[list[Path] | None, typer.Option("--config", "-c", help="File on top; repeatable.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", "-s", help="key=value on top; repeatable.")] = None,
    keys: Annotated[
        str | None, typer.Option(help="Explain these fields (comma-separated, globs, or all) instead.")
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a configuration as a file that can be used with -c, each value with its source."""
    resolved = resolve(files=config or [], preset=preset, sets=sets or [])
    if keys is None:
        print_text((as_json(resolved.config) if as_json_ else as_yaml(resolved)).rstrip("\n"))
        return
    values = resolved.config.model_dump(mode="json")
    rows = [
        {"key": name, "value": values[name], "source": resolved.sources[name], "kind": kind_of(FIELDS[name]).name,
         "meaning": " ".join((FIELDS[name].description or "").split())}
        for name in _matching(keys)
    ]  # fmt: skip
    if as_json_:
        print_json(rows)
    else:
        columns = ("key", "value", "source", "kind", "meaning")
        print_table(columns, [[_cell(row[name]) for name in columns] for row in rows])


@app.command(epilog="\b\nExample:\n  cuarl config schema > cuarl.schema.json")
def schema() -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    print_json(ExperimentConfig.model_json_schema())


@app.command("presets", epilog="\b\nExample:\n  cuarl config presets --json")
def list_presets(as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the shipped presets."""
    if as_json_:
        print_json([{"name": name, "description": text} for name, text in presets().items()])
    else:
        print_table(("preset", "for"), list(presets().items()), footer="cuarl config show PRESET prints one")


def _matching(patterns: str) -> list[str]:
    ordered = [name for panel in PANELS for name in panel.model_fields]
    if patterns == "all":
        return ordered
    found = []
    for pattern in (part.strip().replace("-", "_") for part in patterns.split(",")):
        matches = [name for name in ordered if fnmatchcase(name, pattern)]
        if not matches:
            raise ConfigError(f'unknown key "{pattern}"{did_you_mean(pattern, ordered)}', where="--keys")
        found += matches
    return found


def _cell(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
