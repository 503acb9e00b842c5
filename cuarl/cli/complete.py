"""Completion of names in the shell. It must answer at once, so it looks at names of folders and reads no file."""

from __future__ import annotations

import os
from pathlib import Path

from cuarl.run.manifest import MANIFEST


def run_names(incomplete: str) -> list[str]:
    """Runs in the folder of the runs that begin like this, and ``latest``."""
    folder = Path(os.environ.get("CUARL_RUNS_DIR", "runs"))
    names = [path.name for path in folder.iterdir() if (path / MANIFEST).is_file()] if folder.is_dir() else []
    return [name for name in [*sorted(names), "latest"] if name.startswith(incomplete)]


def preset_names(incomplete: str) -> list[str]:
    """Shipped presets that begin like this."""
    from cuarl.config.load import presets

    return [name for name in presets() if name.startswith(incomplete)]
