"""Tasks as they were written: plain data, with the line that each part stands on.

The format readers (``text_format``, ``yaml_format``, ``json_format``) produce these; ``build`` turns them into tasks.
A reader reports what is wrong as ``Problem`` values, so that all mistakes of a file are shown at once.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cuarl.errors import TaskError

Path = tuple[str | int, ...]
"""Keys and positions that lead to a part of a document."""

SHOWN_PROBLEMS = 20
"""How many problems of one file are listed."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16, so it is asked first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Problem(NamedTuple):
    """Something wrong in a file. ``line`` counts from 1; 0 stands for the file as a whole."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class RawTask:
    """One task as written. ``prefix`` is its place in the document that ``lines`` describes."""

    data: Mapping[str, Any]
    line: int
    lines: Mapping[Path, int] = field(default_factory=dict)
    prefix: Path = ()
    exact_text: bool = False
    """A number or truth value in ``data`` spells exactly as it was written, so it may stand for that text."""

    def line_of(self, path: Path) -> int:
        """Line of the part at ``path``, or of the nearest part around it that is known."""
        for end in range(len(path), 0, -1):
            line = self.lines.get(self.prefix + path[:end])
            if line is not None:
                return line
        return self.line


def decode(data: bytes, where: str) -> str:
    r"""Text of a file: any Unicode encoding with a byte-order mark, else UTF-8; line ends become ``\n``.

    Raises TaskError naming the encoding if the bytes are something else.
    """
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TaskError(
            f"the file is not {encoding.upper()} text: byte 0x{data[len(mark) + error.start]:02x}",
            where=f"{where}, line {line}",
            hint="save the file as UTF-8",
        ) from error
    if "\0" in text:
        raise TaskError(
            "the file holds NUL characters: it is binary, or UTF-16 without a byte-order mark",
            where=where,
            hint="save the file as UTF-8",
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def failure(problems: list[Problem], where: str, hint: str | None = None) -> TaskError:
    """One error that lists the problems of a file, in line order, up to ``SHOWN_PROBLEMS``."""
    problems = sorted(problems, key=lambda p: p.line)
    if len(problems) == 1:
        line, text = problems[0]
        return TaskError(text, where=f"{where}, line {line}" if line else where, hint=hint)
    lines = [f"{len(problems)} problems in {where}"]
    lines += [f"  line {line}: {text}" if line else f"  {text}" for line, text in problems[:SHOWN_PROBLEMS]]
    if len(problems) > SHOWN_PROBLEMS:
        lines.append(f"  … and {len(problems) - SHOWN_PROBLEMS} more")
    return TaskError("\n".join(lines), where=where, hint=hint)
