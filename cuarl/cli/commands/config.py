"""``cuarl config``: show configurations, their fields and the shipped presets."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from cuarl.cli.complete import preset_names
from cuarl.config.keys import Key, value_of
from cuarl.config.keys import keys as keys_by_name
from cuarl.config.kinds import kind_of
from cuarl.config.load import Resolved, did_you_mean, presets, resolve
from cuarl.config.show import as_json, as_yaml, json_schema
from cuarl.errors import ConfigError
from cuarl.terminal.output import print_json, print_table, print_text

app = typer.Typer(
    no_args_is_help=True, epilog="\b\nStart with:\n  cuarl config show --preset tiny\n  cuarl config presets"
)


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
    rows = [_explained(key, resolved) for key in _matching(keys)]
    if as_json_:
        print_json(rows)
    else:
        columns = ("key", "value", "source", "kind", "meaning")
        print_table(columns, [[_cell(row[name]) for name in columns] for row in rows])


@app.command(epilog="\b\nExample:\n  cuarl config schema > cuarl.schema.json")
def schema() -> None:
    """Print the JSON Schema of a configuration file, for editors."""
    print_json(json_schema())


@app.command("presets", epilog="\b\nExample:\n  cuarl config presets --json")
def list_presets(as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the shipped presets."""
    if as_json_:
        print_json([{"name": name, "description": text} for name, text in presets().items()])
    else:
        print_table(("preset", "for"), list(presets().items()), footer="cuarl config show PRESET prints one")


def _explained(key: Key, resolved: Resolved) -> dict[str, object]:
    """What a key is, and what this configuration has there."""
    record = key.path.partition(".")[0]
    there = not key.owners or getattr(resolved.config, record).type in key.owners
    return {
        "key": key.path,
        "value": value_of(resolved.config, key.path) if there else None,
        "source": resolved.sources[key.path] if there else f"only with {record} {' or '.join(key.owners)}",
        "kind": kind_of(key.field).name,
        "meaning": " ".join(key.description.split()),
    }


def _matching(patterns: str) -> list[Key]:
    every = list(keys_by_name().values())
    if patterns == "all":
        return every
    found = []
    for pattern in (part.strip().replace("-", "_") for part in patterns.split(",")):
        matches = [key for key in every if fnmatchcase(key.path, pattern)]
        if not matches:
            raise ConfigError(
                f'unknown key "{pattern}"{did_you_mean(pattern, [key.path for key in every])}', where="--keys"
            )
        found += matches
    return found


def _cell(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
