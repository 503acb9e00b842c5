"""Command lines as the local adb server's phone understands them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

Command = tuple[list[str], bool]
"""The words of a command, and whether it is skipped if the one before it failed."""


def understood(line: str) -> list[Command]:
    """The commands of a line, joined by ``;`` or ``&&``.

    A pause between commands is no action of its own, and left out.
    """
    commands = _joined(_split(line))
    return [commands[0], *(one for one in commands[1:] if one[0][0] != "sleep")] if commands else []


def _split(line: str) -> list[Command]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&")
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[Command] = [([], False)]
    for word in lexer:
        if word in (";", "&&"):
            found.append(([], word == "&&"))
        else:
            found[-1][0].append(word)
    return [(words, linked) for words, linked in found if words]


def _joined(commands: Sequence[Command]) -> list[Command]:
    """What one action of a finger or a keyboard was put into several commands of a line, as one again.

    Taps on one spot become ``input tap X Y COUNT``; pieces of a text with line breaks between, and a last Enter,
    ``input text TEXT [submit]`` with real blanks.
    """
    made: list[Command] = []
    for words, linked in commands:
        last = made[-1][0] if made else []
        match words:
            case ["input", "text", text]:
                text = text.replace("%s", " ")
                if last[:2] == ["input", "text"]:
                    last[2] += "\n" * (len(last) - 3) + text
                    del last[3:]
                    continue
                words = ["input", "text", text]
            case ["input", "keyevent", "66"] if last[:2] == ["input", "text"]:
                last.append("submit")
                continue
            case ["input", "tap", x, y] if last[:4] == ["input", "tap", x, y]:
                last[4:] = [str(int(last[4]) + 1)]
                continue
            case ["input", "tap", x, y]:
                words = ["input", "tap", x, y, "1"]
        made.append((words, linked))
    return made
