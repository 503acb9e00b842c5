"""The house keeps its shape: sizes of packages and functions, and that the pages which name files name real ones."""

import ast
import re
import statistics
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [path.relative_to(ROOT) for path in sorted((ROOT / "cuarl").rglob("*.py"))]


@cache
def trees():
    return {path: ast.parse((ROOT / path).read_text(encoding="utf-8")) for path in FILES}


def lines_by_package():
    found = Counter()
    for path in FILES:
        found[path.parts[1] if len(path.parts) > 2 else "cuarl"] += len((ROOT / path).read_text("utf-8").splitlines())
    return found


def test_no_package_is_nearly_half_of_the_house():
    lines = lines_by_package()
    assert {name: n for name, n in lines.items() if n > 0.3 * lines.total()} == {}
    assert lines["cli"] <= 0.05 * lines.total(), "a command is thin: what it does is in workflow"


def functions():
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
                yield f"{path}:{node.name}", body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short():
    sizes = sorted(size for _, size in functions())
    assert statistics.median(sizes) <= 7 and sizes[len(sizes) * 9 // 10] <= 20
    assert [f"{name}: {size} lines" for name, size in functions() if size > 65] == []


def test_the_files_that_the_plan_names_are_there():
    text = (ROOT / "docs" / "how" / "architecture.md").read_text("utf-8")
    named = [name for name in re.findall(r"`(cuarl/[\w/.]+|tests/\w+)`", text) if "NAME" not in name]
    assert len(named) > 10 and [name for name in named if not (ROOT / name).exists()] == []


CALLED_BY_OTHERS = {
    # what libraries call: pydantic-settings, httpx, click, logging, pickle
    "_load_env_vars",
    "async_auth_flow",
    "emit",
    "format_options",
    "handleError",
    "persistent_id",
    "persistent_load",
    "reducer_override",
    # what a package that brings a backend is written against, and how tests have a local server's pods expire
    "MakeBackend",
    "expire",
}


def names_defined(tree):
    """Functions, classes and module constants; what is decorated is used by its decorator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.decorator_list:
            yield node.name
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_every_name_is_used_somewhere_besides_tests():
    """By its word alone, so what shares its name with something that is used is not found."""
    users = [
        path
        for folder in ("benchmarks", "examples", "docs", "cuarl")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".ipynb", ".yaml", ".js")
    ]
    words = Counter(w for path in users for w in re.findall(r"\w+", path.read_text("utf-8")))
    defined = {name: path for path, tree in trees().items() for name in names_defined(tree)}
    dead = {name: str(path) for name, path in defined.items() if words[name] == 1 and not name.startswith("__")}
    assert {name: path for name, path in dead.items() if name not in CALLED_BY_OTHERS} == {}


def test_did_you_mean_is_in_one_place():
    assert [str(path) for path in FILES if "get_close_matches" in (ROOT / path).read_text("utf-8")] == [
        "cuarl/suggest.py"
    ]


def test_settings_are_read_where_a_command_or_a_call_from_python_begins():
    """All else is handed them, so that nothing below looks at the environment by itself."""
    found = [str(path) for path in FILES if "Settings.load(" in (ROOT / path).read_text("utf-8")]
    assert found == ["cuarl/terminal/state.py", "cuarl/workflow/interface.py", "cuarl/workflow/loaded_run.py"]


def cells(node):
    """How many constants and names the largest literal table within a statement has; a header is none."""
    parts = [node] if not hasattr(node, "body") else getattr(node, "decorator_list", [])
    tables = [
        table
        for part in parts
        for table in ast.walk(part)
        if isinstance(table, ast.List | ast.Tuple | ast.Set | ast.Dict)
        or (isinstance(table, ast.Call) and ast.unparse(table.func).lower().endswith("table"))
    ]
    return max((sum(isinstance(n, ast.Constant | ast.Name) for n in ast.walk(t)) for t in tables), default=0)


def test_only_tables_of_data_are_kept_from_the_formatter():
    files = (
        path
        for folder in ("benchmarks", "cuarl", "docs", "examples", "tests")
        for path in (ROOT / folder).rglob("*.py")
    )
    for path in files:
        text = path.read_text("utf-8")
        marks = [n for n, line in enumerate(text.splitlines(), 1) if re.search(r"[^`]# fmt: (skip|off)\b", line)]
        statements = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt)] if marks else []
        for mark in marks:
            holds = [
                n
                for n in statements
                if min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))]) <= mark <= n.end_lineno
            ]
            assert holds and cells(holds[-1]) >= 8, (
                f"{path.relative_to(ROOT)}:{mark}: no table of data; let ruff lay it out"
            )


def folders(root):
    return {path.parent.relative_to(root) for path in root.rglob("*.py")}


def test_unit_tests_mirror_the_tree():
    """A folder of unit tests is a package's, and every package at the top has one; clients' test stand-ins."""
    tests, packages = folders(ROOT / "tests" / "unit"), folders(ROOT / "cuarl")
    assert sorted(map(str, tests - packages)) == []
    assert {str(path) for path in packages - tests if len(path.parts) == 1} == {"local"}
