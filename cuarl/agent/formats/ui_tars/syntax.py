"""Calls that read like Python's: ``click(start_box='(512,233)')``. Texts are escaped with backslashes."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuarl.agent.formats.base import MUDDLED
from cuarl.agent.formats.call import PLAIN_NUMBER, CallError, behind_samples, escaped, short

POINTS = ("start_box", "end_box", "point", "start_point", "end_point")
NUMBERS = ("amount", "time")
_ACTION = re.compile(r"^[ \t]*Action:[ \t]*", re.MULTILINE)
_BARE = re.compile(r"^[ \t]*(?=[a-z_]+\()", re.MULTILINE)
_NAME = re.compile(r"([a-z_]+)\(\s*")
_ARGUMENT = re.compile(r"([a-z_]+)\s*=\s*")
_PLAIN = PLAIN_NUMBER
_POINT_LIKE = re.compile(r"[-\d.,()\[\]\s]|<\|box_(?:start|end)\|>|</?(?:point|bbox)>", re.ASCII)
_QUOTED = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"", re.DOTALL)
_CLOSING = re.compile(r"\s*(?:,\s*[a-z_]+\s*=|\)\s*(?:\n|$)|$)")
"""What follows a value's last quote, however the quotes are muddled; nothing only behind a point, which is whole
then."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_WRITTEN = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Call(NamedTuple):
    """A verb and its arguments, unescaped; numbers are texts, too."""

    verb: str
    arguments: dict[str, str]


def find_call(text: str, *, strict: bool, warnings: list[str]) -> Call:
    """The call behind the first ``Action:`` at the beginning of a line. Raises ``CallError``."""
    text = behind_samples(text, _ACTION, warnings)
    found = _ACTION.search(text)
    if found is None and not strict:
        text = behind_samples(text, _BARE, warnings)
        found = _BARE.search(text)
        warnings.append("no Action: before the call")
    if found is None:
        raise CallError("no_call", "no Action: in the answer")
    call = text[found.end() :]
    try:
        read, rest = _exact(call)
    except CallError:
        if strict:
            raise
        read, rest = _muddled(call, warnings)
    if rest.strip():
        if strict:
            raise CallError("bad_argument", f"more text behind the call: {short(rest.strip())}")
        warnings.append(f"more text behind the call: {short(rest.strip())}")
    return read


def written(verb: str, **arguments: str) -> str:
    """A call in its canonical form."""
    inside = ", ".join(f"{name}='{escaped(value.translate(_WRITTEN))}'" for name, value in arguments.items())
    return f"{verb}({inside})"


def _exact(text: str) -> tuple[Call, str]:
    """A call with balanced quotes and brackets, and what follows it."""
    verb, at = _verb(text)
    arguments: dict[str, str] = {}
    while not text.startswith(")", at):
        name, at = _argument(text, at, arguments)
        quoted, plain = _QUOTED.match(text, at), _PLAIN.match(text, at)
        value = quoted or plain
        if value is None:
            raise CallError("bad_argument", f"{name} has no closed value: {short(text[at:])}")
        raw = next(g for g in quoted.groups() if g is not None) if quoted else value[0]
        arguments[name] = _unescaped(raw, name, None)
        at = _skip(text, value.end())
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith(")", at):
            raise CallError("bad_argument", f"neither a comma nor a bracket behind {name}: {short(text[at:])}")
    return Call(verb, arguments), text[at + 1 :]


def _muddled(text: str, warnings: list[str]) -> tuple[Call, str]:
    """A call whose quotes or brackets don't match, and what follows it."""
    warnings.append(f"{MUDDLED} of the call don't match")
    verb, at = _verb(text)
    arguments: dict[str, str] = {}
    while at < len(text) and text[at] not in ")\n":
        name, at = _argument(text, at, arguments)
        at += text.startswith(("'", '"'), at)
        ends = (i for i in range(at, len(text)) if text[i] in "'\"" and text[i - 1] != "\\")
        end = next((i for i in ends if _CLOSING.match(text, i + 1)), None)
        bracket = text.rstrip().rfind(")")
        closed = end is not None and text[end + 1 :].strip() != ""
        if end is None:  # no quote closes it: up to the last bracket
            end = after = bracket if bracket >= at else len(text.rstrip())
        else:
            after = end + 1
        if not closed and not (_tells_its_end(name, text[at:end]) and (bracket >= at or after > end)):
            raise CallError("bad_argument", f"the call is cut off within {name}: {short(text[at:end])}")
        arguments[name] = _unescaped(text[at:end], name, warnings)
        at = _skip(text, after)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
    return Call(verb, arguments), text[at + 1 :]


def _tells_its_end(name: str, value: str) -> bool:
    """Whether a value is a point or a number, which nothing could follow but its bracket."""
    return name in (*POINTS, *NUMBERS) and not _POINT_LIKE.sub("", value)


def _verb(text: str) -> tuple[str, int]:
    found = _NAME.match(text)
    if found is None:
        raise CallError("no_call", f"no call behind Action: {short(text.strip())}")
    return found[1], found.end()


def _argument(text: str, at: int, known: dict[str, str]) -> tuple[str, int]:
    """The name of the argument at a place, and where its value starts."""
    found = _ARGUMENT.match(text, at)
    if found is None:
        raise CallError("bad_argument", f"no argument here: {short(text[at:])}")
    if found[1] in known:
        raise CallError("bad_argument", f"{found[1]} is given twice")
    return found[1], found.end()


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _unescaped(raw: str, name: str, warnings: list[str] | None) -> str:
    """``raw`` with its escapes resolved; one that means nothing is an error, or stays as it is with ``warnings``."""

    def one(match: re.Match[str]) -> str:
        known = chr(int(match[1][1:], 16)) if len(match[1]) == 5 else _ESCAPED.get(match[1])
        if known is None and warnings is None:
            raise CallError("bad_argument", f"{name} holds an unknown escape: {match[0]!r}")
        return match[0] if known is None else known

    return _ESCAPE.sub(one, raw)
