"""How a table is laid out: whole in a pipe, and on a terminal so that it can be read at its width. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

GAP = 2
"""Spaces between two columns."""
_COPIED = frozenset({"id", "run", "episode"})
"""Columns whose cells are folded only where nothing else helps, for they are copied."""
_NONE = frozenset({"-", "0", "0.0 %"})
"""Cells that are left out of a single row, too, where there is no room for them."""
_LEAST = 8
"""Columns of text fold, but not to fewer characters than this."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cells under the names of their columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[str] = frozenset()
    """Columns of numbers, which are flush right and never folded."""
    whole: frozenset[str] = _COPIED
    """Other columns that are not folded."""

    def is_fixed(self, name: str) -> bool:
        """Whether the cells of a column stay on one line."""
        return name in self.numeric or name in self.whole

    def widths(self) -> list[int]:
        """Of each column, in terminal cells."""
        from rich.cells import cell_len

        return [max(cell_len(line[i]) for line in [self.columns, *self.rows]) for i in range(len(self.columns))]

    def least_width(self) -> int:
        """Below this, a number would have to be broken."""
        each = [
            width if self.is_fixed(name) else min(width, max(_LEAST, len(name)))
            for name, width in zip(self.columns, self.widths(), strict=True)
        ]
        return sum(each) + GAP * (len(each) - 1)

    def width(self) -> int:
        """As wide as it wants to be."""
        return sum(self.widths()) + GAP * (len(self.columns) - 1)

    def without(self, dropped: int) -> Table:
        """The other columns."""
        kept = [i for i in range(len(self.columns)) if i != dropped]
        columns, rows = tuple(self.columns[i] for i in kept), [[row[i] for i in kept] for row in self.rows]
        return replace(self, columns=columns, rows=rows)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table for a certain width."""

    table: Table
    same: Sequence[str] = ()
    """What was left out because it is the same in every row."""
    is_list: bool = False
    """Whether it is too wide for a table."""


def fitted(table: Table, width: int) -> Fitted:
    """What to print where ``width`` characters are on a line. Nothing is left out that would have fitted."""
    same: list[str] = []
    for i in range(len(table.columns) - 1, 0, -1):  # the first column names the rows
        if table.width() <= width:
            break
        cells = {row[i] for row in table.rows}
        if len(cells) == 1 and (len(table.rows) > 1 or cells <= _NONE):
            same.insert(0, f"{table.columns[i]} {table.rows[0][i]}")
            table = table.without(i)
    if table.least_width() > width:
        table = replace(table, whole=frozenset())
    return Fitted(table, same, is_list=table.least_width() > width)


def as_list(table: Table) -> list[str]:
    """Row by row: the first cell, and the others beneath it by name."""
    name = max(map(len, table.columns[1:]), default=0)
    return [
        "\n".join(
            [row[0], *(f"  {column:<{name}}  {cell}" for column, cell in zip(table.columns[1:], row[1:], strict=True))]
        )
        for row in table.rows
    ]


def plain(table: Table) -> list[str]:
    """As wide as it needs to be."""
    from rich.cells import cell_len

    lines, widths = [], table.widths()
    for line in [table.columns, *table.rows]:
        cells = []
        for name, text, width in zip(table.columns, line, widths, strict=True):
            gap = " " * (width - cell_len(text))
            cells.append(gap + text if name in table.numeric else text + gap)
        lines.append((" " * GAP).join(cells).rstrip())
    return lines
