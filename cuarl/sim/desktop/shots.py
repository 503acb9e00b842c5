"""Pictures of the desktop, to look at while working on it.

``python -m cuarl.sim.desktop.shots OUT --page files/Documents``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

from cuarl.sim.desktop.look import DesktopLook
from cuarl.sim.desktop.start import prepare
from cuarl.sim.desktop.view import view
from cuarl.sim.desktop.world import PROFILES
from cuarl.sim.device.sheet import sheet
from cuarl.sim.kit.render import render
from cuarl.tasks.task import TaskInstance


def shot(page: str, seed: int, profile: str) -> Image.Image:
    """A window with a page (empty: what the seed opens) as the desktop of ``seed`` shows it."""
    task = TaskInstance(task_id="shot", goal="", preset={"ui.page": page} if page else {})
    return render(view(prepare(task, DesktopLook.drawn(seed, 0.2), PROFILES[profile])))


def main() -> None:
    """Write a sheet with the asked-for pages of one or more seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--page", action="append", help="app/page; repeat; default: what the seed opens")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--profile", default="desktop-small", choices=sorted(PROFILES))
    parser.add_argument("--columns", type=int, default=3)
    args = parser.parse_args()
    pages = args.page or [""]
    sheet([shot(p, s, args.profile) for s in args.seeds for p in pages], args.columns).save(args.out)


if __name__ == "__main__":
    main()
