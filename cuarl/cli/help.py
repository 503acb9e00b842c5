"""Help of commands that take an experiment: what most people need, in panels that fit a screen.

``--help-all`` shows the rest, too.

Panels of what is named on the command line come along: ``cuarl train --env browser --help`` has the browser's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from itertools import groupby
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from cuarl.config import words
from cuarl.config.keys import Key, home, keys
from cuarl.config.kinds import kind_of
from cuarl.config.unions import UNIONS
from cuarl.terminal.output import has_colour

MOST_NEEDED: Mapping[str, str] = {
    "tasks": "Suites, categories, ids, globs or files; repeatable",
    "eval_tasks": "The same, to evaluate on",
    "difficulty": "Only easy, medium or hard ones",
    "limit": "At most this many tasks",
    "seed": "Seed of everything random",
    "env": "sim, linux, browser, adb, gbox, pods, gym, …",
    "max_turns": "Most turns of an episode",
    "max_concurrent_rollouts": "Most episodes at a time",
    "model_name": "tiny (shipped), a folder, or a model id",
    "load_checkpoint_path": "Checkpoint to start from",
    "use_lora": "An adapter, or all weights",
    "lora_rank": "Rank of the adapter",
    "device": "auto, cpu, cuda, cuda:1, mps",
    "model_base_url": "Sample from this OpenAI-compatible server",
    "trainer": "local, or tinker: the Tinker service",
    "group_size": "Attempts at the same task instance",
    "groups_per_batch": "Groups that one step learns from",
    "temperature": "Of training episodes",
    "eval_temperature": "Of evaluations",
    "max_tokens": "Most tokens of one answer",
    "algorithm": "grpo, dapo, gspo, rloo, ppo, sft, …",
    "reward": "finished, simple, shaped, score, …",
    "max_steps": "Training steps",
    "learning_rate": "Unset: 2e-4 with LoRA, 1e-5 without",
    "eval_every": "Steps between evaluations",
    "eval_episodes": "Episodes of one evaluation",
    "save_every": "Steps between checkpoints",
}
"""Fields that the short help of every command has, in a line each."""
SELDOM = frozenset(
    {
        "accelerate",
        "accept_changes",
        "overwrite",
        "db",
        "monitor_base_url",
        "project_id",
        "project_token",
        "nodes",
        "node_rank",
        "rendezvous",
    }
)
"""Options of the commands themselves that it has not."""
FIRST = ("Run", "Arguments")
LAST = "Help"
WORDS = "__words"
"""Where a command's context keeps the words that it was called with."""
ALL = "__help_all"
LONG = 58
"""Characters of a clause that fill a line."""


class _Help:
    """Of a command or a group: which options its help shows."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words: help is printed before any option has its value."""
        ctx.meta[WORDS] = tuple(args)
        rest: list[str] = super().parse_args(ctx, words.assigned(args))  # type: ignore[misc]
        return rest

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        """The usual one, in the panel of ``--help-all``."""
        option: TyperOption | None = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.rich_help_panel, option.help = LAST, "This; with --env NAME its options, too"
        return option

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Some shells show the help of what they complete."""
        _explain(self.params)  # type: ignore[attr-defined]
        found: list[Any] = super().shell_complete(ctx, incomplete)  # type: ignore[misc]
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help of a command that has only the options to show."""
        _explain(self.params)  # type: ignore[attr-defined]
        shown: Any = copy(self)
        # drawn panels would take twice the lines
        shown.rich_markup_mode = None
        everything, chosen = ctx.meta.get(ALL, False), words.chosen(ctx.meta.get(WORDS, ()))
        shown.params = _ordered(_shown(self.params, chosen, everything=everything))  # type: ignore[attr-defined]
        super(_Help, shown).format_help(ctx, formatter)  # type: ignore[misc]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Panel by panel, also where nothing is drawn around them."""
        for panel, params in groupby(self.get_params(ctx), key=_panel):  # type: ignore[attr-defined]
            records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
            if records:
                _write(formatter, panel, records)
        for panel, brought in groupby(words.foreign(ctx.meta.get(WORDS, ())), key=lambda key: key.panel):
            _write(formatter, panel, [(f"{k.flag} <{kind_of(k.field).name}>", k.description) for k in brought])
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)


def _explain(params: Iterable[Any]) -> None:
    """Give the flags of fields their help: descriptions are read from the source, so no other command waits for it."""
    for param in params:
        if param.name in keys() and param.help is None:
            param.help = help_of(keys()[param.name])


def help_of(key: Key) -> str:
    """The help of a key's flag: what it means, and its default if it has one."""
    text = " ".join(key.description.split())
    default = UNIONS[key.path].default if key.path in UNIONS else key.field.default
    if default is None or default == ():
        return text
    return f"{text} (default: {str(default).lower() if isinstance(default, bool) else default})"


def _write(formatter: Any, panel: str, records: list[tuple[str, str]]) -> None:
    with formatter.section(typer.style(panel, bold=True) if has_colour(sys.stdout) else panel):
        formatter.write_dl(records)


class HelpCommand(_Help, TyperCommand):
    """A command that takes an experiment."""


class HelpGroup(_Help, TyperGroup):
    """A command that takes an experiment, and has commands below it."""


def _shown(params: Iterable[Any], chosen: frozenset[str], *, everything: bool) -> Iterator[Any]:
    for param in params:
        if everything or param.name in chosen:
            yield param
        elif param.name not in keys():
            if param.name not in SELDOM:
                yield _short(param, _first(param.help or ""))
        elif param.name in MOST_NEEDED:
            short = _short(param, MOST_NEEDED[param.name])
            short.rich_help_panel = home(keys()[param.name])
            yield short


def _first(text: str) -> str:
    """The first clause of a text, or what it explains."""
    clause = re.split(r"[;.] | \(|\.$", text)[0]
    return clause.partition(":")[0] if len(clause) > LONG else clause


def _short(param: Any, text: str) -> Any:
    short = copy(param)
    default = re.search(r" \(default: .*\)$", param.help or "")
    short.help = text + (default[0] if default else "")
    if param.type_descriptor.is_choice:
        short.metavar = "<name>"
    return short


def _panel(param: Any) -> str:
    return param.rich_help_panel or ("Arguments" if param.param_type_name == "argument" else FIRST[0])


def _ordered(params: Iterable[Any]) -> list[Any]:
    """Panels whole, in the order in which each first appears; what a command takes itself stands first."""
    together: dict[str, list[Any]] = {panel: [] for panel in FIRST}
    for param in params:
        together.setdefault(_panel(param), []).append(param)
    return [param for panel in together.values() for param in panel]


def help_all(ctx: typer.Context, wanted: bool) -> None:
    """Print the help with every option, and end the command."""
    if wanted and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        raise typer.Exit
