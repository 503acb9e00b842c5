"""Small frozen records that a desktop keeps: files, people, networks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A file or folder by its path below the home folder: ``Documents/notes.txt``."""

    path: str
    folder: bool = False
    text: str = ""
    """Content of a text file."""
    size_kb: int = 0
    """Size of a file that is no text; that of a text follows from it."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who can sign in."""

    name: str
    admin: bool = False
