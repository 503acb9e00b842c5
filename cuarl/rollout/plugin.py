"""The source of a reward function of one's own: the files that it is made of, and whether they still say the same."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from cuarl import objects
from cuarl.rollout import reward


def sources(name: str) -> dict[str, Path]:
    """Files of the reward ``name`` by module: its own, and what it imports from the same folder or package.

    cuarl's own files are left out.

    Empty for what comes with cuarl, and for what has no source in Python. Raises ConfigError if it can't be imported.
    """
    function = reward.get(name)
    if name in reward.BUILTIN:
        return {}
    first = inspect.getmodule(inspect.unwrap(function))
    if first is None or (file := _file(first)) is None or not _lies_in(function, name, file):
        return {}
    # a package's modules lie below the folder that the package itself lies in
    root = file.parents[first.__name__.count(".") + (file.name == "__init__.py")]
    found: dict[str, Path] = {}
    waiting = [first.__name__]
    while waiting:
        module = waiting.pop()
        path = _file(sys.modules.get(module))
        outside = module.partition(".")[0] == "cuarl" or path is None or "site-packages" in path.parts
        if module not in found and path is not None and not outside and path.is_relative_to(root):
            found[module] = path
            waiting += _imports(path, module)
    return found


def same_code(a: bytes, b: bytes) -> bool:
    """Whether two files say the same, comments and layout aside."""
    try:
        return a == b or ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))
    except (SyntaxError, ValueError):
        return False


def changes(kept: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """One line for each module that is gone, new or another."""
    gone = [f"module {name} is imported no more" for name in kept if name not in now]
    new = [f"module {name} is imported, too" for name in now if name not in kept]
    shared = [name for name in kept if name in now]
    return [
        *(f"module {name}: its code differs" for name in shared if not same_code(kept[name], now[name])),
        *gone,
        *new,
    ]


def _lies_in(function: object, name: str, file: Path) -> bool:
    """Whether a function's code is in its module's file: that of a notebook or an interactive session is in none."""
    code = getattr(function, "__code__", None)
    return code is None or not objects.is_held(name) or Path(code.co_filename).resolve() == file


def _file(module: ModuleType | None) -> Path | None:
    try:
        file = inspect.getsourcefile(module) if module is not None else None
    except TypeError:  # a module in C
        return None
    return Path(file).resolve() if file else None


def _imports(path: Path, module: str) -> Iterator[str]:
    """Names of modules, or of what may be one, that a file imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))
