"""The tree of files as a flat tuple of records, and what can be done with it.

Pure; ``FileProblem`` says what went wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cuarl.sim.desktop.records import File

Files = tuple[File, ...]
HOME = "/home/sam"


class FileProblem(Exception):
    """An operation on files is impossible; the message is what a shell would say."""


def find(files: Files, path: str) -> File | None:
    """The file or folder at a path below the home folder; the home folder itself is the empty path."""
    if not path:
        return File("", folder=True)
    return next((f for f in files if f.path == path), None)


def parent(path: str) -> str:
    """The folder that something is in; empty for the home folder."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """A path's last part."""
    return path.rpartition("/")[2]


def joined(folder: str, name: str) -> str:
    """The path of something in a folder."""
    return f"{folder}/{name}" if folder else name


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, at any depth."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def children(files: Files, folder: str) -> list[File]:
    """What is directly in a folder: folders first, then by name."""
    found = [f for f in files if f.path and parent(f.path) == folder]
    return sorted(found, key=lambda f: (not f.folder, name_of(f.path).lower()))


def size_of(file: File) -> int:
    """Size in bytes."""
    return file.size_kb * 1024 if file.size_kb else len(file.text.encode())


def bad_name(name: str) -> bool:
    """Whether something can't be called so."""
    return not name.strip() or "/" in name or name in (".", "..")


def make_folder(files: Files, path: str) -> Files:
    """With a new empty folder. Raises FileProblem."""
    _require_free(files, path)
    return (*files, File(path, folder=True))


def write(files: Files, path: str, text: str) -> Files:
    """With a text file of this content, new or overwritten. Raises FileProblem."""
    old = find(files, path)
    if old is None:
        _require_folder(files, parent(path))
        return (*files, File(path, text=text))
    if old.folder:
        raise FileProblem("Is a directory")
    return tuple(File(path, text=text) if f.path == path else f for f in files)


def remove(files: Files, paths: Iterable[str]) -> Files:
    """Without some files and folders and all that is in them."""
    gone = tuple(paths)
    return tuple(f for f in files if not any(is_inside(f.path, path) for path in gone))


def move(files: Files, source: str, target: str) -> Files:
    """With a file or folder, and all that is in it, at another path.

    A file at the target is overwritten. Raises FileProblem.
    """
    if source == target:
        raise FileProblem("are the same file")
    moving = _movable(files, source, target)
    kept = tuple(f for f in files if f.path != target)
    return tuple(_rebased(f, source, target) if is_inside(f.path, moving.path) else f for f in kept)


def copy(files: Files, source: str, target: str) -> Files:
    """With a copy of a file or folder. A file at the target is overwritten. Raises FileProblem."""
    if source == target:
        raise FileProblem("are the same file")
    _movable(files, source, target)
    copies = tuple(_rebased(f, source, target) for f in files if is_inside(f.path, source))
    return (*(f for f in files if f.path != target), *copies)


def free_name(files: Files, path: str) -> str:
    """``path``, or the first of ``name (copy)``, ``name (copy 2)`` … that is not taken."""
    if find(files, path) is None:
        return path
    stem, dot, ending = name_of(path).rpartition(".")
    if not stem:
        stem, dot, ending = name_of(path), "", ""
    count = 1
    while True:
        mark = "copy" if count == 1 else f"copy {count}"
        other = joined(parent(path), f"{stem} ({mark}){dot}{ending}")
        if find(files, other) is None:
            return other
        count += 1


def _movable(files: Files, source: str, target: str) -> File:
    found, there = find(files, source), find(files, target)
    if found is None or not source:
        raise FileProblem("No such file or directory")
    if is_inside(target, source):
        raise FileProblem("cannot move a directory into itself")
    if there is not None and (there.folder or found.folder):
        raise FileProblem("File exists")
    _require_folder(files, parent(target))
    return found


def _rebased(file: File, source: str, target: str) -> File:
    return replace(file, path=target + file.path[len(source) :])


def _require_free(files: Files, path: str) -> None:
    if find(files, path) is not None:
        raise FileProblem("File exists")
    _require_folder(files, parent(path))


def _require_folder(files: Files, path: str) -> None:
    folder = find(files, path)
    if folder is None:
        raise FileProblem("No such file or directory")
    if not folder.folder:
        raise FileProblem("Not a directory")
