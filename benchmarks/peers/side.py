"""One side of one cell, in a process of its own: ``python -m benchmarks.peers.side cuarl '{"turns": 1, …}'``."""

from __future__ import annotations

import json
import os
import sys

MARK = "RESULT "
"""Begins the line with what was measured."""


def main() -> None:
    """Print what was measured as the last line."""
    # nothing here is on a hub, and whether it answers must not be part of a start
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRL_EXPERIMENTAL_SILENCE="1")
    from benchmarks.peers.work import Work

    side, work = sys.argv[1], Work(**json.loads(sys.argv[2]))
    if side == "trl":
        from benchmarks.peers.trl_side import run
    else:
        from benchmarks.peers.own_side import run
    print(MARK + json.dumps(run(work)), flush=True)


if __name__ == "__main__":
    main()
