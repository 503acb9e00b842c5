"""Fuzz the servers and print what became of the requests; exits with 1 where a server was at fault."""

from __future__ import annotations

import sys

from tests.fuzz.run import HEAD, fuzz
from tests.fuzz.servers import TARGETS


def main(words: list[str]) -> int:
    count, names = int(words[0]) if words else 300, words[1:] or list(TARGETS)
    print(HEAD, flush=True)
    faults: list[str] = []
    for name in names:
        table = fuzz(TARGETS[name](), count)
        print(table.row(), flush=True)
        faults += [f"{name}: {fault}" for fault in table.faults]
    for fault in faults[:20]:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
