"""What the fields of records mean: the text that stands below each, read from the source when somebody asks.

Pydantic can do it while classes are made, which every start of a command would pay for: 0.4 s for all of them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache


def of_class(record: type) -> dict[str, str]:
    """The texts below the annotated attributes of a class, those of its bases included; none where no source is.

    What a class annotates anew means what it says there, not what the base said.
    """
    found: dict[str, str] = {}
    for base in reversed(record.__mro__):
        anew = inspect.get_annotations(base)
        inherited = {name: text for name, text in found.items() if name not in anew}
        found = {**inherited, **_below(base.__module__).get(base.__qualname__, {})}
    return found


@cache
def _below(module: str) -> Mapping[str, Mapping[str, str]]:
    """For each class of a module, by its qualified name, the texts below its attributes."""
    if module not in sys.modules:
        return {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, SyntaxError):  # typed into a session, built in, or changed since it was loaded
        return {}
    return {name: dict(_texts(node.body)) for name, node in _classes(tree.body, "")}


def _classes(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            yield from _classes(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(node.body, f"{prefix}{node.name}.<locals>.")


def _texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for i, node in enumerate(body[:-1]):
        match node, body[i + 1]:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
