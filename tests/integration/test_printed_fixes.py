"""Every command that an error or a closing line prints is one that the command line understands."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_documented_commands import parse

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
FILLED = "placeholder"
"""Stands for whatever a message fills in."""


def told(node: ast.AST) -> Iterator[str]:
    """The texts that an expression can be, with ``FILLED`` for what they fill in."""
    if isinstance(node, ast.Constant):
        yield from [node.value] if isinstance(node.value, str) else []
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else FILLED for part in node.values)
    else:
        for child in ast.iter_child_nodes(node):
            yield from told(child)


def printed() -> Iterator[tuple[str, str]]:
    """Where, and which command: those in hints and in what is named to be done next."""
    for path in sorted((ROOT / "cuarl").rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        # few files print a command
        for node in ast.walk(ast.parse(code)) if "cuarl " in code and re.search(r"\b(hint|then)=", code) else ():
            if isinstance(node, ast.keyword) and node.arg in ("hint", "then"):
                for text in told(node.value):
                    for command in re.findall(r"\bcuarl (?=[a-z])[^#|&();,…]*", text):
                        yield f"{path.relative_to(ROOT)}:{node.value.lineno}", command.strip()


def test_texts_are_read_with_what_they_fill_in():
    assert [*told(ast.parse("f'a {b} c' if d else 'e'").body[0])] == [f"a {FILLED} c", "e"]


def test_every_command_that_is_printed_is_understood(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILLED).mkdir()
    commands = sorted(set(printed()))
    assert len(commands) > 80
    failed = []
    for where, command in commands:
        words = shlex.split(command.split(" with ")[0].split(" without ")[0].split(" at a ")[0].split(" does")[0])
        try:
            parse(words)
        except Exception as error:  # noqa: BLE001 (whatever a parser raises is listed)
            # of the command line's library, which Typer brings along in a place of its own
            if type(error).__name__ != "BadParameter" or FILLED not in str(error):
                failed.append(f"{where}: {command}: {error}")
    assert failed == []
