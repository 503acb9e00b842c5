"""What validators see of a desktop: files, trash, settings, windows. Read from outside, as plain data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuarl.env.linux.windows import Window

MAX_FILES = 500
MAX_TEXT_BYTES = 65_536


def list_files(folder: Path) -> list[dict[str, Any]]:
    """Everything below a folder but hidden names, sorted.

    ``path``, ``folder``, ``size_bytes``, ``executable``, ``text``.

    ``text`` is None for folders, links, large files and what is not UTF-8. Links are listed, never followed.
    """
    found: list[dict[str, Any]] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *(name for name in files if not name.startswith("."))]):
            if len(found) < MAX_FILES:
                found.extend(_entry(Path(parent) / name, folder))
    return sorted(found, key=lambda entry: str(entry["path"]))


def ui(windows: Sequence[Window]) -> dict[str, Any]:
    """The windows, topmost last, which app has the focus, and how many there are."""
    focused = next((window for window in windows if window.focused), None)
    return {
        "windows": [
            {
                "app": window.app,
                "title": window.title,
                "focused": window.focused,
                "minimised": window.minimised,
                "maximised": window.maximised,
                "dialog": window.dialog,
                "x": window.x,
                "y": window.y,
                "width": window.width,
                "height": window.height,
            }
            for window in windows
        ],
        "focused": focused.app if focused else "",
        "title": focused.title if focused else "",
        "count": len(windows),
        "apps": sorted({window.app for window in windows}),
    }


def _entry(path: Path, root: Path) -> list[dict[str, Any]]:
    try:
        facts = path.lstat()
        is_folder = path.is_dir() and not path.is_symlink()
        return [
            {
                "path": path.relative_to(root).as_posix(),
                "folder": is_folder,
                "size_bytes": 0 if is_folder else facts.st_size,
                "executable": not is_folder and bool(facts.st_mode & 0o100),
                "text": _text(path, facts.st_size),
            }
        ]
    except OSError:  # gone just now
        return []


def _text(path: Path, size: int) -> str | None:
    if path.is_symlink() or not path.is_file() or size > MAX_TEXT_BYTES:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
