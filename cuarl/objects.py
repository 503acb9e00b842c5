"""Functions and classes of one's own, named by their dotted path: ``package.module:name``.

A configuration names them, so that a run says what it was made with and can be resumed. An object that can't be imported,
such as a function of a notebook, is held under its path for as long as this process lives, and nowhere else.
"""

from __future__ import annotations

import sys
from functools import reduce
from importlib import import_module
from typing import Any

from cuarl.errors import ConfigError

_HELD: dict[str, Any] = {}


def name(thing: Any) -> str:
    """The path of a function or class; one that can't be imported is held under it from now on."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    path = f"{named.__module__}:{named.__qualname__}"
    if not _importable(named.__module__, named.__qualname__, thing):
        _HELD[path] = thing
    return path


def is_held(path: str) -> bool:
    """Whether it names an object that only this process has."""
    return path in _HELD


def get(path: str, what: str = "object") -> Any:
    """What lies at ``package.module:name`` (or ``package.module.name``). Raises ConfigError."""
    if path in _HELD:
        return _HELD[path]
    module, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if module == "__main__" or "<" in attribute:
        raise ConfigError(
            f'the {what} "{path}" was an object of one Python session, and can\'t be imported',
            hint="put it into a module, and give it as package.module:name",
        )  # fmt: skip
    try:
        return reduce(getattr, attribute.split("."), import_module(module))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f'the {what} "{path}" can\'t be imported: {error}') from error


def _importable(module: str, qualname: str, thing: Any) -> bool:
    if module == "__main__" or "<" in qualname:
        return False
    try:
        return reduce(getattr, qualname.split("."), sys.modules.get(module)) is thing
    except AttributeError:
        return False
