"""Pictures of pages, to look at while working on them.

``python -m cuarl.sim.phone.shots OUT --page settings/display``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

from cuarl.sim.device.sheet import sheet
from cuarl.sim.kit.render import render
from cuarl.sim.phone.graph import page_graph
from cuarl.sim.phone.look import Look
from cuarl.sim.phone.start import prepare
from cuarl.sim.phone.view import view
from cuarl.sim.phone.world import PROFILES
from cuarl.tasks.task import TaskInstance


def shot(page: str, seed: int, profile: str) -> Image.Image:
    """A page (``home`` is the launcher, ``layer/NAME`` a layer) as the device of ``seed`` shows it."""
    preset = {} if page == "home" else {"ui.overlay": page[6:]} if page.startswith("layer/") else {"ui.page": page}
    task = TaskInstance(task_id="shot", goal="", preset=preset)
    return render(view(prepare(task, Look.drawn(seed), PROFILES[profile])))


def main() -> None:
    """Write a sheet with the asked-for pages of one or more seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--page", action="append", help="page id; repeat; default: every page")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--profile", default="small", choices=sorted(PROFILES))
    parser.add_argument("--columns", type=int, default=8)
    args = parser.parse_args()
    world = prepare(TaskInstance(task_id="shot", goal=""), Look(), PROFILES[args.profile])
    pages = args.page or ["home", *page_graph(world).edges]
    sheet([shot(p, s, args.profile) for s in args.seeds for p in pages], args.columns).save(args.out)


if __name__ == "__main__":
    main()
