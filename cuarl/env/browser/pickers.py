"""Lists and pickers of pages, which Chromium shows where no click reaches them."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def pickers() -> str:
    """JavaScript that makes of lists and pickers what a click reaches, or nothing."""
    return files("cuarl.env.browser").joinpath("pickers.js").read_text(encoding="utf-8")
