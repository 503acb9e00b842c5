"""What a command prints. Standard output is for results, and ``--json`` owns it; everything else goes to stderr.

On a terminal tables fold to its width. In a pipe they are plain, as wide as they need to be, and without escape codes,
so that an id found by ``grep`` is a whole id. ``NO_COLOR``, ``FORCE_COLOR``, ``TERM=dumb`` and ``COLUMNS`` are obeyed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from cuarl.errors import ConfigError
from cuarl.safe_text import escaped, loggable, masked, printable, safe_json
from cuarl.terminal.state import STATE

if TYPE_CHECKING:
    from rich.console import Console


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

    Cells are never cut. The footer goes to stderr, since it is no result.
    """
    texts = [["-" if cell is None else printable(masked(str(cell))) for cell in row] for row in rows]
    if is_terminal(sys.stdout) or os.environ.get("COLUMNS"):
        _rich_table(columns, texts, numeric)
    else:
        _plain_table(columns, texts, numeric)
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
    """Tell the person something that is no result; silent with ``-q``."""
    if not STATE.quiet:
        print(loggable(text), file=sys.stderr)


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


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[str]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(Text(name), overflow="fold", justify="right" if name in numeric else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[str]) -> None:
    from rich.cells import cell_len

    lines = [list(columns), *rows]
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = []
        for name, text, width in zip(columns, line, widths, strict=True):
            gap = " " * (width - cell_len(text))
            cells.append(gap + text if name in numeric else text + gap)
        print("  ".join(cells).rstrip())
