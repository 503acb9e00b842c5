"""The terminal's shell: a small honest part of a POSIX shell, as a pure function on the tree of files.

Quotes, ``~``, ``*`` and ``?``, pipes, ``>``, ``>>``, ``;`` and ``&&`` work; everything outside of the home folder is
out of reach. Commands and their messages are in ``commands.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.commands import COMMANDS, CommandFailed, Session

_TOKEN = re.compile(r"""\s*(?:(?P<op>>>|>|&&|;|\|)|(?P<word>(?:[^\s"'\\|&;<>]|\\.|"[^"]*"|'[^']*')+))""")
_PIECE = re.compile(r"""\\(?P<one>.)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^"'\\]+)""")


@dataclass(frozen=True, slots=True)
class Result:
    """What a line did."""

    files: fs.Files
    cwd: str
    """Folder below the home folder."""
    output: str = ""
    """What it printed, errors included."""
    clear: bool = False
    """Whether the screen is to be emptied first."""
    leave: bool = False
    """Whether the shell ended."""


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    quoted: bool = False
    op: bool = False


class _SyntaxProblem(Exception):
    pass


def run_line(files: fs.Files, cwd: str, history: Sequence[str], line: str, width: int = 80) -> Result:
    """Run one line as typed, on a screen ``width`` characters wide."""
    session = Session(files, cwd, tuple(history), width)
    printed: list[str] = []
    try:
        words = list(_words(line))
        for commands in _lists(words):
            for pipeline in commands:
                ok = _run_pipeline(session, pipeline, printed)
                if not ok:
                    break
    except _SyntaxProblem as problem:
        printed.append(f"sh: {problem}\n")
    output = "".join(printed)
    return Result(session.files, session.cwd, output, session.cleared, session.left)


def _words(line: str) -> Iterator[_Word]:
    at = 0
    line = line.rstrip()
    while at < len(line):
        found = _TOKEN.match(line, at)
        if not found:
            quote = next((c for c in line[at:] if c in "\"'"), None)
            what = f"unexpected EOF while looking for matching `{quote}'" if quote else "syntax error"
            raise _SyntaxProblem(what)
        at = found.end()
        yield _Word(found["op"], op=True) if found["op"] else _unquoted(found["word"])


def _unquoted(text: str) -> _Word:
    parts, quoted = list[str](), False
    for piece in _PIECE.finditer(text):
        bare = piece["bare"]
        if bare is not None:
            if not parts and (bare == "~" or bare.startswith("~/")):
                bare = fs.HOME + bare[1:]
            parts.append(bare.replace("$HOME", fs.HOME))
        else:
            quoted = True
            parts.append(next(part for part in (piece["one"], piece["double"], piece["single"]) if part is not None))
    return _Word("".join(parts), quoted)


def _lists(words: list[_Word]) -> Iterator[list[list[_Word]]]:
    """Pipelines joined by ``&&``, one list for each part between semicolons."""
    for part in _split(words, ";"):
        pipelines = list(_split(part, "&&"))
        if any(not p for p in pipelines) and (len(pipelines) > 1 or (len(words) > 1 and part)):
            raise _SyntaxProblem("syntax error near unexpected token")
        yield [p for p in pipelines if p]


def _split(words: list[_Word], op: str) -> Iterator[list[_Word]]:
    part: list[_Word] = []
    for word in words:
        if word.op and word.text == op:
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _run_pipeline(session: Session, words: list[_Word], printed: list[str]) -> bool:
    """Run commands joined by pipes; whether the last one succeeded."""
    stages, ok = list(_split(words, "|")), True
    stdin = ""
    for i, stage in enumerate(stages):
        arguments, target, append = _redirected(stage)
        session.piped = i + 1 < len(stages) or target is not None
        output, ok = _run_command(session, arguments, stdin, printed)
        if target is not None:
            ok = _save(session, target, output, append, printed) and ok
            output = ""
        stdin = output
    printed.append(stdin)
    return ok


def _redirected(stage: list[_Word]) -> tuple[list[_Word], str | None, bool]:
    """A command's words, and where its output goes."""
    kept, target, append = list[_Word](), None, False
    words = iter(stage)
    for word in words:
        if word.op and word.text in (">", ">>"):
            name = next(words, None)
            if name is None or name.op:
                raise _SyntaxProblem("syntax error near unexpected token `newline'")
            target, append = name.text, word.text == ">>"
        else:
            kept.append(word)
    if not kept and target is None:
        raise _SyntaxProblem("syntax error near unexpected token `|'")
    return kept, target, append


def _run_command(session: Session, words: list[_Word], stdin: str, printed: list[str]) -> tuple[str, bool]:
    arguments = [text for word in words for text in _expanded(session, word)]
    if not arguments:
        return "", True
    name, *rest = arguments
    command = COMMANDS.get(name)
    if command is None:
        printed.append(f"{name}: command not found\n")
        return "", False
    session.failed = False
    try:
        output = command(session, rest, stdin)
    except CommandFailed as problem:
        printed.append(f"{name}: {problem}\n")
        return problem.output, False
    printed.extend(f"{name}: {line}\n" for line in session.take_errors())
    return output, not session.failed


def _save(session: Session, target: str, output: str, append: bool, printed: list[str]) -> bool:
    try:
        path = session.resolve(target)
        old = fs.find(session.files, path)
        before = old.text if old and append else ""
        session.files = fs.write(session.files, path, before + output)
    except (fs.FileProblem, CommandFailed) as problem:
        reason = str(problem).rpartition(": ")[2]
        printed.append(f"sh: {target}: {reason}\n")
        return False
    return True


def _expanded(session: Session, word: _Word) -> list[str]:
    """A word, or the names that its pattern matches."""
    if word.quoted or not any(c in word.text for c in "*?"):
        return [word.text]
    head, slash, pattern = word.text.rpartition("/")
    try:
        folder = session.resolve(head) if slash else session.cwd
    except CommandFailed:
        return [word.text]
    names = [fs.name_of(f.path) for f in fs.children(session.files, folder)]
    found = sorted(n for n in names if fnmatchcase(n, pattern) and (not n.startswith(".") or pattern.startswith(".")))
    return [f"{head}{slash}{name}" for name in found] or [word.text]
