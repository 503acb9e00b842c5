"""No number of any command line is ``nan`` or infinite: bounds alone let ``nan`` through, since no comparison with it
holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from cuarl.cli.app import Commands, run


def numbers(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every option that is a number, with the words that lead to its command."""
    for name, below in getattr(command, "commands", {}).items():
        yield from numbers(below, (*path, name))
    for parameter in command.params:
        if re.search(r"\bfloat\b", str(parameter.type_descriptor.annotation)):
            yield parameter.opts[0], path


def all_numbers() -> dict[str, tuple[str, ...]]:
    """One command for each option."""
    loaded = ((name, Commands(name="root")._load(name)) for name in Commands.entries)
    return {option: path for name, command in loaded for option, path in numbers(command, (name,))}


FOUND = all_numbers()


def test_the_options_are_found() -> None:
    assert {"--learning-rate", "--temperature", "--fail-under", "--idle", "--train-ratio"} <= FOUND.keys()


@pytest.mark.parametrize("option", sorted(FOUND))
@pytest.mark.parametrize("number", ["nan", "inf"])
def test_option_refuses_what_is_no_number(option: str, number: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*FOUND[option], option, number]
    assert run(command) == 2
    said = "".join(capsys.readouterr())
    assert "unexpected" not in said and (option in said or number in said), said
