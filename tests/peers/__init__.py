"""Programs that are run by a Python of its own, in which another project's real package is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
OPENENV = Path(os.environ.get("CUARL_TEST_OPENENV", FOLDER.parents[1] / ".venv" / "openenv" / "bin" / "python"))
"""A Python with ``openenv``, which ``make openenv`` installs: it needs an older Pillow than cuarl is tested with."""

needs_openenv = pytest.mark.skipif(
    not OPENENV.exists(), reason="the real openenv is not installed: make openenv, or CUARL_TEST_OPENENV=PYTHON"
)
