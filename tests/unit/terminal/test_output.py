import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cuarl import safe_text
from cuarl.errors import ConfigError
from cuarl.terminal import output
from cuarl.terminal.state import STATE
from cuarl.types import Usage

ID = "0193f2b7-6c1e-7d5a-9c3b-2f8e4a1d7b60"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_c60_ids_in_a_pipe_are_whole_however_wide_the_table(capsys):
    output.print_table(("id", "goal", "n"), [(ID, "x" * 300, 1), ("b", None, 22)], numeric={"n"})
    header, first, second = capsys.readouterr().out.splitlines()
    assert first == f"{ID}  {'x' * 300}   1"
    assert header.split() == ["id", "goal", "n"]
    assert second.split() == ["b", "-", "22"]


def test_c59_cells_cannot_steer_the_terminal_or_break_the_line(capsys):
    output.print_table(("goal",), [("a\x1b[31m\nb",)])
    assert capsys.readouterr().out == "goal\na\\x1b[31m b\n"


def test_wide_characters_keep_columns_aligned(capsys):
    output.print_table(("a", "b"), [("中文", "x"), ("abcd", "y")])
    assert capsys.readouterr().out.splitlines()[1:] == ["中文  x", "abcd  y"]


def test_c60_a_narrow_terminal_folds_but_never_cuts(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    output.print_table(("name", "goal"), [(ID, "open the settings")])
    lines = [line for line in terminal.getvalue().splitlines() if line.strip()]
    assert max(map(len, lines)) <= 40
    assert "".join(line.split()[0] for line in lines[1:]) == ID


def test_c60_columns_wins_in_a_pipe(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    output.print_table(("id", "goal"), [("a", "open the settings and turn on the light")])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 30
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("variables", "tty", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
    ids=str,
)
def test_c60_colour_follows_the_environment(monkeypatch, variables, tty, colour):
    stream = Terminal() if tty else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    output.console().print("x", style="bold red")
    assert ("\x1b[" in stream.getvalue()) == colour == output.has_colour(stream)


def test_a_missing_stream_is_no_terminal():
    assert not output.is_terminal(None)


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    path: Path


def test_c60_json_is_strict_whatever_it_is_made_of(capsys):
    output.print_json({"a": Point(float("nan"), Path("p")), "b": Usage(images=2), "c": float("inf"), "d": {3}})
    text = capsys.readouterr().out
    data = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert data["a"] == {"x": None, "path": "p"}
    assert (data["b"]["images"], data["c"], data["d"]) == (2, None, [3])


def test_json_lines_are_single(capsys):
    output.print_json({"a": "x\ny"}, line=True)
    output.print_json([1], line=True)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": "x\ny"}, [1]]


def test_c57_secrets_are_masked_wherever_they_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(safe_text, "_secrets", set())
    safe_text.remember(["canary-1b2c3d"])
    output.print_json({"canary-1b2c3d": ["canary-1b2c3d"]})
    output.print_table(("a",), [("canary-1b2c3d",)])
    output.print_text("canary-1b2c3d")
    output.note("canary-1b2c3d")
    out, err = capsys.readouterr()
    assert "canary" not in out + err
    assert (out + err).count("***3d") == 5


def test_notes_are_silent_when_asked(capsys):
    output.note("one")
    STATE.quiet = True
    output.note("two")
    output.closing("done", where="x", then="y")
    assert capsys.readouterr() == ("", "one\n")


def test_the_closing_lines_say_result_place_and_next_step(capsys):
    output.closing("success 12 % → 93 %", where=Path("runs/a"), then="cuarl eval a")
    assert capsys.readouterr().err == "success 12 % → 93 %\n  in: runs/a\n  next: cuarl eval a\n"


def test_c60_nothing_is_asked_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(ConfigError, match="no terminal to ask on") as caught:
        output.confirm("this deletes 3 runs", yes=False)
    assert caught.value.hint == "add --yes"
    output.confirm("this deletes 3 runs", yes=True)


@pytest.mark.parametrize(("answer", "goes_on"), [("y\n", True), ("YES\n", True), ("n\n", False), ("", False)])
def test_an_answer_is_taken_at_its_word(monkeypatch, capsys, answer, goes_on):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    if goes_on:
        output.confirm("this deletes 3 runs", yes=False)
    else:
        with pytest.raises(ConfigError, match="not confirmed"):
            output.confirm("this deletes 3 runs", yes=False)
    assert "this deletes 3 runs" in capsys.readouterr().err
