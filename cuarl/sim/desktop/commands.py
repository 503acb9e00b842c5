"""The shell's commands.

Each a function of a session, its arguments and what is piped into it, giving what it prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cuarl.sim.desktop import filesystem as fs
from cuarl.sim.desktop.records import File

Command = Callable[["Session", list[str], str], str]


class CommandFailed(Exception):
    """A command gives up; the message follows its name and a colon."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


class Session:
    """What the commands of one line work on."""

    def __init__(self, files: fs.Files, cwd: str, history: tuple[str, ...], width: int) -> None:
        self.files, self.cwd, self.history, self.width = files, cwd, history, width
        self.piped = False
        """Whether the output goes into a pipe or file rather than to the screen."""
        self.cleared = self.left = self.failed = False
        self._errors: list[str] = []

    def resolve(self, text: str) -> str:
        """The path below the home folder that was meant. Raises CommandFailed for one outside of it."""
        absolute = text if text.startswith("/") else f"{fs.HOME}/{self.cwd}/{text}"
        parts: list[str] = []
        for part in absolute.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        full = "/" + "/".join(parts)
        if full != fs.HOME and not full.startswith(f"{fs.HOME}/"):
            raise CommandFailed(f"{text}: Permission denied")
        return full[len(fs.HOME) + 1 :]

    def existing(self, text: str) -> File:
        """The file or folder that a word names. Raises CommandFailed."""
        found = fs.find(self.files, self.resolve(text))
        if found is None:
            raise CommandFailed(f"{text}: No such file or directory")
        return found

    def error(self, message: str) -> None:
        """Note that one of several arguments failed, and go on."""
        self._errors.append(message)
        self.failed = True

    def take_errors(self) -> list[str]:
        """The notes so far."""
        taken, self._errors = self._errors, []
        return taken


def options(arguments: list[str], allowed: str) -> tuple[set[str], list[str]]:
    """Letters of ``-x`` words, and the other words. Raises CommandFailed for a letter that is not allowed."""
    given, rest = set[str](), list[str]()
    for i, word in enumerate(arguments):
        if word == "--":
            rest += arguments[i + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            bad = next((c for c in word[1:] if c not in allowed), None)
            if bad:
                raise CommandFailed(f"invalid option -- '{bad}'")
            given |= set(word[1:])
        else:
            rest.append(word)
    return given, rest


def need(words: list[str], count: int = 1) -> None:
    """Raise CommandFailed unless there are so many words."""
    if len(words) < count:
        raise CommandFailed("missing operand" if not words else f"missing destination file operand after '{words[-1]}'")


def pwd(s: Session, arguments: list[str], stdin: str) -> str:
    """Print the folder."""
    return f"{fs.HOME}/{s.cwd}".rstrip("/") + "\n"


def ls(s: Session, arguments: list[str], stdin: str) -> str:
    """List folders."""
    flags, names = options(arguments, "al1")
    shown: list[str] = []
    for name in names or ["."]:
        try:
            found = s.existing(name)
        except CommandFailed as problem:
            s.error(f"cannot access '{name}': {str(problem).rpartition(': ')[2]}")
            continue
        if len(names) > 1 and found.folder:
            shown.append(f"{name}:\n")
        items = [(fs.name_of(f.path), f) for f in fs.children(s.files, found.path)] if found.folder else [(name, found)]
        items = sorted((n, f) for n, f in items if "a" in flags or not n.startswith("."))
        shown.append(_listing(items, long="l" in flags, width=0 if s.piped or "1" in flags else s.width))
    return "".join(shown)


def _listing(items: list[tuple[str, File]], *, long: bool, width: int) -> str:
    """Names in columns as the width of a screen allows; 0 means one a line, as it is in pipes."""
    if long:
        return "".join(
            f"{'drwxr-xr-x' if f.folder else '-rw-r--r--'} sam {4096 if f.folder else fs.size_of(f):>8} {name}\n"
            for name, f in items
        )
    if not width:
        return "".join(f"{name}\n" for name, _ in items)
    names = [f"'{name}'" if " " in name else name for name, _ in items]
    rows = 1
    while (table := _columns(names, rows)) and rows < len(names) and sum(wide for _, wide in table) > width + 2:
        rows += 1
    lines = ["".join(column[i].ljust(wide) for column, wide in table if i < len(column)).rstrip() for i in range(rows)]
    return "".join(f"{line}\n" for line in lines if line)


def _columns(names: list[str], rows: int) -> list[tuple[list[str], int]]:
    """Names in columns of ``rows``, each with its width."""
    columns = [names[i : i + rows] for i in range(0, len(names), rows)]
    return [(column, max(map(len, column)) + 2) for column in columns]


def cd(s: Session, arguments: list[str], stdin: str) -> str:
    """Go to a folder."""
    if len(arguments) > 1:
        raise CommandFailed("too many arguments")
    found = s.existing(arguments[0] if arguments else fs.HOME)
    if not found.folder:
        raise CommandFailed(f"{arguments[0]}: Not a directory")
    s.cwd = found.path
    return ""


def _texts(s: Session, names: Iterable[str], stdin: str) -> Iterable[tuple[str, str]]:
    """Names and contents of files; of what is piped in, if none are named."""
    given = list(names)
    if not given:
        yield "", stdin
    for name in given:
        try:
            found = s.existing(name)
            if found.folder:
                raise CommandFailed(f"{name}: Is a directory")
            yield name, found.text or ("(binary)\n" if found.size_kb else "")
        except CommandFailed as problem:
            s.error(str(problem))


def cat(s: Session, arguments: list[str], stdin: str) -> str:
    """Print files."""
    _, names = options(arguments, "")
    return "".join(text for _, text in _texts(s, names, stdin))


def echo(s: Session, arguments: list[str], stdin: str) -> str:
    """Print words."""
    plain = arguments[:1] == ["-n"]
    return " ".join(arguments[plain:]) + ("" if plain else "\n")


def mkdir(s: Session, arguments: list[str], stdin: str) -> str:
    """Make folders."""
    flags, names = options(arguments, "p")
    need(names)
    for name in names:
        try:
            path = s.resolve(name)
            steps = path.split("/")
            for i in range(len(steps) if "p" in flags else 0):
                above = "/".join(steps[: i + 1])
                if fs.find(s.files, above) is None:
                    s.files = fs.make_folder(s.files, above)
            if "p" not in flags:
                s.files = fs.make_folder(s.files, path)
        except (CommandFailed, fs.FileProblem) as problem:
            s.error(f"cannot create directory '{name}': {str(problem).rpartition(': ')[2]}")
    return ""


def rmdir(s: Session, arguments: list[str], stdin: str) -> str:
    """Remove empty folders."""
    need(arguments)
    for name in arguments:
        try:
            found = s.existing(name)
            reason = "Not a directory" if not found.folder else ""
            if fs.children(s.files, found.path):
                reason = "Directory not empty"
        except CommandFailed as problem:
            reason = str(problem).rpartition(": ")[2]
        if reason:
            s.error(f"failed to remove '{name}': {reason}")
        else:
            s.files = fs.remove(s.files, (found.path,))
    return ""


def touch(s: Session, arguments: list[str], stdin: str) -> str:
    """Make empty files."""
    need(arguments)
    for name in arguments:
        try:
            path = s.resolve(name)
            if fs.find(s.files, path) is None:
                s.files = fs.write(s.files, path, "")
        except (CommandFailed, fs.FileProblem) as problem:
            s.error(f"cannot touch '{name}': {str(problem).rpartition(': ')[2]}")
    return ""


def rm(s: Session, arguments: list[str], stdin: str) -> str:
    """Remove files; with -r folders too."""
    flags, names = options(arguments, "rRf")
    if "f" not in flags:
        need(names)
    for name in names:
        try:
            found = s.existing(name)
        except CommandFailed as problem:
            if "f" not in flags:
                s.error(f"cannot remove '{name}': {str(problem).rpartition(': ')[2]}")
            continue
        if not found.path or (found.folder and not flags & {"r", "R"}):
            s.error(f"cannot remove '{name}': {'Is a directory' if found.path else 'Permission denied'}")
        else:
            s.files = fs.remove(s.files, (found.path,))
            if fs.find(s.files, s.cwd) is None:
                s.cwd = ""
    return ""


def cp(s: Session, arguments: list[str], stdin: str) -> str:
    """Copy files; with -r folders too."""
    flags, names = options(arguments, "rR")
    _transfer(s, names, "copy", folders=bool(flags & {"r", "R"}))
    return ""


def mv(s: Session, arguments: list[str], stdin: str) -> str:
    """Move or rename."""
    _, names = options(arguments, "f")
    _transfer(s, names, "move", folders=True)
    return ""


def _transfer(s: Session, names: list[str], verb: str, *, folders: bool) -> None:
    """Copy or move the first words to the last one."""
    if not names:
        raise CommandFailed("missing file operand")
    need(names, 2)
    *sources, last = names
    path = s.resolve(last)
    into = fs.find(s.files, path)
    if len(sources) > 1 and (into is None or not into.folder):
        raise CommandFailed(f"target '{last}' is not a directory")
    for name in sources:
        try:
            found = s.existing(name)
            if found.folder and not folders:
                s.error(f"-r not specified; omitting directory '{name}'")
                continue
            target = fs.joined(path, fs.name_of(found.path)) if into and into.folder else path
            s.files = (fs.move if verb == "move" else fs.copy)(s.files, found.path, target)
        except CommandFailed as problem:
            s.error(f"cannot stat '{name}': {str(problem).rpartition(': ')[2]}")
        except fs.FileProblem as problem:
            same = str(problem) == "are the same file"
            s.error(f"'{name}' and '{last}' {problem}" if same else f"cannot {verb} '{name}' to '{last}': {problem}")


def grep(s: Session, arguments: list[str], stdin: str) -> str:
    """Print the lines that match."""
    flags, words = options(arguments, "invc")
    if not words:
        raise CommandFailed("usage: grep [-invc] PATTERN [FILE]...")
    try:
        pattern = re.compile(words[0], re.IGNORECASE if "i" in flags else 0)
    except re.error as problem:
        raise CommandFailed(f"bad pattern: {problem}") from problem
    several, printed, any_found = len(words) > 2, list[str](), False
    for name, text in _texts(s, words[1:], stdin):
        lines = enumerate(text.splitlines(), 1)
        found = [(i, line) for i, line in lines if (pattern.search(line) is None) == ("v" in flags)]
        any_found = any_found or bool(found)
        head = f"{name}:" if several else ""
        if "c" in flags:
            printed.append(f"{head}{len(found)}\n")
        else:
            printed += [f"{head}{f'{i}:' if 'n' in flags else ''}{line}\n" for i, line in found]
    s.failed = s.failed or not any_found
    return "".join(printed)


def wc(s: Session, arguments: list[str], stdin: str) -> str:
    """Count lines, words and bytes."""
    flags, names = options(arguments, "lwc")
    printed, totals = list[str](), [0, 0, 0]
    for name, text in _texts(s, names, stdin):
        counts = [text.count("\n"), len(text.split()), len(text.encode())]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        printed.append(_counts(counts, flags, name))
    if len(names) > 1:
        printed.append(_counts(totals, flags, "total"))
    return "".join(printed)


def _counts(counts: list[int], flags: set[str], name: str) -> str:
    shown = [str(n) for n, flag in zip(counts, "lwc", strict=True) if not flags or flag in flags]
    return " ".join([*shown, *([name] if name else [])]) + "\n"


def head(s: Session, arguments: list[str], stdin: str) -> str:
    """Print the first lines."""
    count, names = _line_count(arguments)
    return "".join("".join(text.splitlines(keepends=True)[:count]) for _, text in _texts(s, names, stdin))


def tail(s: Session, arguments: list[str], stdin: str) -> str:
    """Print the last lines."""
    count, names = _line_count(arguments)
    return "".join("".join(text.splitlines(keepends=True)[-count or 10**9 :]) for _, text in _texts(s, names, stdin))


def _line_count(arguments: list[str]) -> tuple[int, list[str]]:
    """``-n 3``, ``-n3`` or ``-3``, and the other words."""
    words, count = list(arguments), "10"
    if words and words[0] == "-n":
        count, words = (words[1] if len(words) > 1 else ""), words[2:]
    elif words and words[0].startswith("-"):
        count, words = words[0].removeprefix("-n").removeprefix("-"), words[1:]
    if not count.isdigit():
        raise CommandFailed(f"invalid number of lines: '{count}'")
    return int(count), words


def clear(s: Session, arguments: list[str], stdin: str) -> str:
    """Empty the screen."""
    s.cleared = True
    return ""


def history(s: Session, arguments: list[str], stdin: str) -> str:
    """Print what was typed before."""
    return "".join(f"{i:>4}  {line}\n" for i, line in enumerate(s.history, 1))


def whoami(s: Session, arguments: list[str], stdin: str) -> str:
    """Print the user's name."""
    return "sam\n"


def leave(s: Session, arguments: list[str], stdin: str) -> str:
    """End the shell."""
    s.left = True
    return ""


def list_commands(s: Session, arguments: list[str], stdin: str) -> str:
    """Print the commands."""
    return "".join(f"{name:<8} {(run.__doc__ or '').rstrip('.')}\n" for name, run in sorted(COMMANDS.items()))


COMMANDS: dict[str, Command] = {
    "pwd": pwd, "ls": ls, "cd": cd, "cat": cat, "echo": echo, "mkdir": mkdir, "rmdir": rmdir, "touch": touch, "rm": rm,
    "cp": cp, "mv": mv, "grep": grep, "wc": wc, "head": head, "tail": tail, "clear": clear, "history": history,
    "help": list_commands, "whoami": whoami, "exit": leave,
}  # fmt: skip
"""Commands by name."""
