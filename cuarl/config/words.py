"""What the words of a command line name, before a command's options are read.

The options of environments that other packages bring are known only once one is named, so their flags are read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from cuarl.config.keys import Key, keys, keys_of
from cuarl.config.kinds import kind_of
from cuarl.config.unions import UNIONS


def named(words: Sequence[str]) -> dict[str, str]:
    """The types of record that are named by their flags: ``--env browser``."""
    return dict(_named(words))


def _named(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, after in pairwise([*words, ""]):
        flag, equals, value = word.partition("=")
        if flag.removeprefix("--") in UNIONS and flag.startswith("--"):
            yield flag.removeprefix("--"), value if equals else after


def chosen(words: Sequence[str]) -> frozenset[str]:
    """Names of the keys that belong to the records that these words name."""
    types = named(words)
    return frozenset(
        key.name for key in keys().values() if key.owners and types.get(key.path.partition(".")[0]) in key.owners
    )


def foreign(words: Sequence[str]) -> list[Key]:
    """The keys of a record that these words name and another package brings."""
    found = []
    for union, type_ in named(words).items():
        if type_ not in UNIONS[union].types():
            try:
                found += list(keys_of(union, type_))
            except ValueError:  # there is none of that name, which is told when the options are read
                continue
    return found


def assigned(words: Sequence[str]) -> list[str]:
    """The words, with the flags of ``foreign`` keys as assignments: ``--bell-pitch 3`` as ``-s env.pitch=3``."""
    flags = {key.flag: key for key in foreign(words)}
    made: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        key = flags.get(flag.replace("--no-", "--", 1)) if flag.startswith("--no-") else flags.get(flag)
        if word == "--":
            return [*made, word, *rest]
        if key is None:
            made.append(word)
        elif kind_of(key.field).base is bool and not equals:
            made += ["-s", f"{key.path}={'false' if flag.startswith('--no-') else 'true'}"]
        else:
            made += ["-s", f"{key.path}={value if equals else ''.join(rest[:1])}"]
            del rest[: not equals]
    return made
