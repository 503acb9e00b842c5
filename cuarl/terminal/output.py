"""What a command prints. Standard output is for results, and ``--json`` owns it; everything else goes to stderr.

On a terminal tables fold to its width. In a pipe they are plain, as wide as they need to be, and without escape codes,
so that an id found by ``grep`` is a whole id. ``NO_COLOR``, ``FORCE_COLOR``, ``TERM=dumb`` and ``COLUMNS`` are obeyed.
"""

from __future__ import annotations

import logging
import os
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from cuarl.errors import ConfigError
from cuarl.safe_text import escaped, loggable, masked, printable, safe_json
from cuarl.terminal import tables
from cuarl.terminal.state import STATE

if TYPE_CHECKING:
    from rich.console import Console


screen = logging.getLogger("cuarl.screen")
"""What the person was told: for logs of runs, and never for the screen once more."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at this stream through a terminal that can do more than print lines."""
    if stream is None or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return stream.isatty()


def has_colour(stream: TextIO | None) -> bool:
    """Whether escape codes may be written to this stream."""
    if os.environ.get("NO_COLOR"):
        return False
    return is_terminal(stream) or bool(os.environ.get("FORCE_COLOR"))


def console(*, stderr: bool = False) -> Console:
    """A rich console that keeps to the rules above."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    colour = has_colour(stream)
    return Console(
        file=stream,
        force_terminal=colour or is_terminal(stream),
        color_system="auto" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
    )


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, numeric: Collection[str] = (), footer: str = ""
) -> None:
    """Print rows under column names; None shows as ``-``. ``numeric`` columns are set flush right.

    Cells are never cut, and numbers never broken: where a terminal is too narrow, columns that say the same in every
    row become a line beneath, and what is too wide even so is printed row by row. The footer goes to stderr, since it
    is no result.
    """
    texts = [["-" if cell is None else printable(masked(str(cell))) for cell in row] for row in rows]
    whole = tables.Table(list(columns), texts, frozenset(numeric))
    if is_terminal(sys.stdout) or os.environ.get("COLUMNS"):
        _print_fitted(tables.fitted(whole, console().width))
    else:
        print("\n".join(tables.plain(whole)))
    if footer:
        note(footer)


def print_text(text: str, *, flush: bool = False) -> None:
    """Print a result that is text, of one line or more."""
    print(escaped(masked(text)), flush=flush)


def print_json(value: Any, *, line: bool = False) -> None:
    """Print one JSON document: models, dataclasses, paths and dates as JSON has them, not-a-number as null.

    ``line`` puts it on one line and flushes, for commands that print JSON lines as they go.
    """
    print(safe_json(value, indent=None if line else 2), flush=line)


def print_plan(facts: Mapping[str, object], *, as_json: bool) -> None:
    """Print what ``--dry-run`` found out."""
    if as_json:
        print_json(facts)
    else:
        print_table(("what", "value"), list(facts.items()))
        note("nothing was started")


def note(text: str) -> None:
    """Tell the person something that is no result; silent with ``-q``. The log of a run that is open keeps it."""
    screen.info("%s", text)
    if not STATE.quiet:
        print(_wrapped(loggable(text)), file=sys.stderr)


def is_verbose() -> bool:
    """Whether the person asked to be told more."""
    return STATE.log_level in ("info", "debug")


def _wrapped(text: str) -> str:
    """One line that is longer than the terminal goes on in the next between two words."""
    if "\n" in text or not is_terminal(sys.stderr):
        return text
    width = console(stderr=True).width
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False) if len(text) > width else text


def say_loading(what: str) -> None:
    """Tell at once, who waits at a terminal, what the first seconds go by with."""
    if is_terminal(sys.stderr):
        note(f"loading {what} …")


def closing(result: str, *, where: object, then: str) -> None:
    """The last three lines of a long command: the result, where it was written, what to run next."""
    note(f"{result}\n  in: {where}\n  next: {then}")


def confirm(what: str, *, yes: bool) -> None:
    """Ask before something is destroyed. Without a terminal to ask on, only ``--yes`` will do (else ConfigError)."""
    if yes:
        return
    if not is_terminal(sys.stdin):
        raise ConfigError(f"{what} needs a confirmation, and there is no terminal to ask on", hint="add --yes")
    print(loggable(f"{what}. Go on? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("not confirmed; nothing was changed", hint="add --yes")


def _print_fitted(fitted: tables.Fitted) -> None:
    from rich.table import Table
    from rich.text import Text

    if fitted.is_list:
        print("\n".join(tables.as_list(fitted.table)))
    else:
        drawn = Table(box=None, header_style="bold", pad_edge=False, padding=(0, tables.GAP, 0, 0))
        for name in fitted.table.columns:
            fixed, number = fitted.table.is_fixed(name), name in fitted.table.numeric
            drawn.add_column(Text(name), overflow="fold", no_wrap=fixed, justify="right" if number else "left")
        for row in fitted.table.rows:
            drawn.add_row(*map(Text, row))
        console().print(drawn)
    if fitted.same:
        note(f"in all rows: {', '.join(fitted.same)}")
