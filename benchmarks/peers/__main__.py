"""The contest with TRL, as one command: ``python -m benchmarks.peers --out docs/results/speed/NAME.jsonl``.

Needs ``trl==1.16.0`` and ``datasets`` beside cuarl. For each cell TRL plays, then cuarl, each in a process of its own.
A step is a rollout of all episodes and one update on them; one step to warm up, then the median of three. Cells are
written TURNS:WIDTHxHEIGHT, with ``:mixed`` for answers of mixed lengths and ``:200ms`` for clicks that take that long.
Status 1 if a side failed, or if the two did not do the same.

On a GPU: ``python -m benchmarks.peers --device cuda``. On two cores: ``taskset -c 0,1 python -m benchmarks.peers``.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from benchmarks.peers.contest import contest
from benchmarks.peers.results import SIDES, surroundings
from benchmarks.peers.work import SHAPES, Work, parse_cell

GRIDS = {
    "cpu": "1:192x320,3:192x320,6:192x320,1:384x640,3:384x640,6:384x640,3:192x320:mixed,3:192x320:200ms",
    "cuda": "1:544x1216,3:544x1216,6:544x1216,3:544x1216:mixed,3:1080x2400",
}
DEFAULTS = {
    "cpu": {"shape": "tiny", "think": 0, "micro": 8, "checkpointing": False},
    "cuda": {"shape": "2b", "think": 11, "micro": 4, "checkpointing": True},
}


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", choices=["cpu", "cuda"], default="cpu")
    add("--grid", help=f"cells with commas between; on a CPU {GRIDS['cpu']}; on a GPU {GRIDS['cuda']}")
    add("--sides", default=",".join(SIDES), help="trl,cuarl or one of them")
    add("--shape", choices=list(SHAPES), help="tiny on a CPU, 2b on a GPU")
    add("--out", type=Path, help="file to append a JSON line to for each side of each cell")
    add("--commit", default="", help="of cuarl, where there is no repository to ask")
    add("--timeout", type=float, default=900.0, help="seconds that one side of a cell may take")
    add("--steps", type=int, default=3, help="steps measured")
    add("--warmup", type=int, default=1, help="steps before them")
    add("--batch", type=int, default=16, help="episodes of a step")
    add("--group", type=int, default=8, help="attempts at a task")
    add("--micro", type=int, help="sequences of a forward pass of training: 8 on a CPU, 4 on a GPU")
    add("--think", type=int, help="letters sampled before each call: 0 on a CPU, 11 on a GPU")
    add("--delay-ms", type=int, default=0, help="what each click takes, in cells that don't say it")
    add("--threads", type=int, default=2, help="threads of torch on a CPU")
    add("--seed", type=int, default=1)
    add(
        "--checkpointing",
        action=argparse.BooleanOptionalAction,
        help="of gradients, both sides; on a GPU unless refused",
    )
    add("--activation-gib", type=float, default=0.0, help="activations that cuarl keeps with checkpointing")
    return parser


def main() -> None:
    """Run the cells."""
    parser = arguments()
    args = parser.parse_args()
    sides = args.sides.split(",")
    if not set(sides) <= set(SIDES):
        parser.error(f"--sides {args.sides}: there are {' and '.join(SIDES)}")
    shared = {
        name: getattr(args, name)
        for name in ("device", "steps", "warmup", "batch", "group", "delay_ms", "threads", "seed", "activation_gib")
    }
    for name, value in DEFAULTS[args.device].items():
        shared[name] = value if getattr(args, name) is None else getattr(args, name)
    try:
        cells = [Work(**shared | parse_cell(cell)) for cell in (args.grid or GRIDS[args.device]).split(",")]
    except ValueError as error:
        parser.error(str(error))
    if args.out:
        # rather than when the first side has been measured
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.touch()
    wrong = False
    for text in contest(cells, sides, surroundings(args.device, args.commit), args.timeout, args.out):
        print(text, flush=True)
        wrong |= text.startswith("!") or " FAILED: " in text
    raise SystemExit(int(wrong))


if __name__ == "__main__":
    # as an exception, so that the process of the side that is measured ends, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
