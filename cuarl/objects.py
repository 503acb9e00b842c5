"""Functions and classes of one's own, named by their dotted path, ``package.module:name``, or by ``file.py:name``.

Modules of the working folder are found like installed ones, which come first. A configuration names them, so that a run
says what it was made with and can be resumed. An object that can't be imported, such as a function of a notebook, is
held under its path for as long as this process lives, and nowhere else.
"""

from __future__ import annotations

import sys
import traceback
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from cuarl.errors import ConfigError

_HERE = str(Path(__file__).parent)
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
    """What lies at ``package.module:name`` (or ``package.module.name``), or at ``file.py:name``. Raises ConfigError."""
    if path in _HELD:
        return _HELD[path]
    module, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if module == "__main__" or "<" in attribute:
        raise ConfigError(
            f'the {what} "{path}" was an object of one Python session, and can\'t be imported',
            hint="put it into a module, and give it as package.module:name",
        )
    if not attribute:
        raise ConfigError(f'the {what} "{path}" has no name behind the module', hint=f"{path.rstrip(':')}:NAME")
    try:
        found = _module_of(Path(module)) if module.endswith(".py") else _module(module)
        return reduce(getattr, attribute.split("."), found)
    except (ImportError, AttributeError, SyntaxError, NameError) as error:
        raise ConfigError(f'the {what} "{path}" can\'t be imported: {error}', where=own_frame(error) or "") from error


def own_frame(error: BaseException) -> str | None:
    """Where in a user's own code an error came up, as ``file, line 3, in name``; None where none of it was running."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_foreign(f.filename)]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}, line {error.lineno}"
    return f"{_shown(frames[-1].filename)}, line {frames[-1].lineno}, in {frames[-1].name}" if frames else None


def _is_foreign(file: str) -> bool:
    return file.startswith(("<", _HERE, sys.base_prefix)) or "site-packages" in file


def _shown(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _module(name: str) -> ModuleType:
    _look_in(Path.cwd())
    return import_module(name)


def _module_of(file: Path) -> ModuleType:
    """The module of a file. Raises ImportError if there is no such file, or another module has its name."""
    path = file.expanduser().resolve()
    if not path.is_file():
        raise ImportError(f"there is no file {file}")
    _look_in(path.parent)
    module = import_module(path.stem)
    if module.__file__ is None or Path(module.__file__).resolve() != path:
        raise ImportError(f"another module has the name {path.stem} ({module.__file__}); give the file another name")
    return module


def _look_in(folder: Path) -> None:
    """Find modules in a folder, behind all that is installed.

    Nothing else would: it is the command's that Python looks in.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _importable(module: str, qualname: str, thing: Any) -> bool:
    if module == "__main__" or "<" in qualname:
        return False
    try:
        return reduce(getattr, qualname.split("."), sys.modules.get(module)) is thing
    except AttributeError:
        return False
