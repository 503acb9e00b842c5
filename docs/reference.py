"""Writes the generated parts of the reference pages; ``make docs`` runs it, and a test holds the pages to it.

A generated part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from cuarl.cli.app import Commands, app
from cuarl.config.algorithms import ALGORITHMS, OPTIONS
from cuarl.config.keys import keys
from cuarl.config.kinds import kind_of
from cuarl.config.load import presets
from cuarl.config.unions import UNIONS
from cuarl.descriptions import of_class
from cuarl.env.shell_checks.stock import missing
from cuarl.monitor.metric_names import METRICS
from cuarl.settings import SECRETS, Settings
from cuarl.tasks.source import load

DOCS = Path(__file__).parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Each page with its generated parts made anew."""
    return {
        path: PART.sub(lambda match: f"{match[1]}\n{PARTS[match[2]]()}\n{match[3]}", text)
        for path in sorted(DOCS.rglob("*.md"))
        if "<!-- generated: " in (text := path.read_text(encoding="utf-8"))
    }


def commands() -> str:
    """The help of every command, as it is printed into a pipe."""
    root = typer.main.get_command(app)
    context = _context("cuarl", root)
    blocks = [_block(root, context)]
    for name in Commands.entries:
        _, command, _ = root.resolve_command(context, [name])
        blocks += _blocks(name, command, context)
    return "\n".join(blocks)


def _blocks(name: str, command: Any, parent: Any) -> Iterator[str]:
    context = _context(name, command, parent)
    yield _block(command, context)
    for child_name, child in getattr(command, "commands", {}).items():
        yield from _blocks(child_name, child, context)


def _context(name: str, command: Any, parent: Any = None) -> Any:
    command.rich_markup_mode = None
    return command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=100)


def _block(command: Any, context: Any) -> str:
    return f"## `{context.command_path}`\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


def fields() -> str:
    """Every key of a configuration, by panel; behind what is one of several records those of each type."""
    blocks, panel = [], ""
    for key in keys().values():
        if key.panel != panel:
            panel = key.panel
            blocks += [
                "",
                f"### {panel}",
                "",
                "| key | kind | default | flag | meaning |",
                "| --- | --- | --- | --- | --- |",
            ]
        kind = kind_of(key.field).name.replace(" | ", ", ")
        default = UNIONS[key.path].default if key.path in UNIONS else key.field.default
        shown = "unset" if default in (None, ()) else f"`{str(default).lower() if kind == 'true, false' else default}`"
        blocks.append(f"| `{key.path}` | {kind} | {shown} | `{key.flag}` | {_line(key.description)} |")
    return "\n".join([*blocks[1:], ""])


def variables() -> str:
    """Every operational setting with its variable."""
    meanings = of_class(Settings)
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        variable, *others = Settings.variables(name)
        also = "".join(f", `{other}`" for other in (*others, *([f"{variable}_FILE"] if variable in SECRETS else [])))
        default = "unset" if field.default is None else f"`{field.default}`"
        rows.append(f"| `{variable}`{also} | {default} | {_line(meanings[name])} |")
    return "\n".join([*rows, ""])


def shipped() -> str:
    """The presets."""
    rows = ["| preset | for |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in presets().items())]
    return "\n".join([*rows, ""])


def stock() -> str:
    """The recipe's tasks, and whether the shell of any Android can set them up and judge them."""
    suites = ("recipe_train", "recipe_eval")
    tasks = [(suite, task) for suite in suites for task in load([suite], role=None).tasks]
    needs = [missing(task.instantiate(0)) for _, task in tasks]
    rows = [f"| `{suite}/{task.id}` | {_needed(more)} |" for (suite, task), more in zip(tasks, needs, strict=True)]
    told = f"{sum(not more for more in needs)} of {len(tasks)} tasks need nothing but the shell."
    return "\n".join([told, "", "| task | needs `cuarl-device` for |", "| --- | --- |", *rows])


def _needed(more: list[str]) -> str:
    return ", ".join(f"{what.partition(' ')[0]} `{what.partition(' ')[2]}`" for what in more) or "–"


def metrics() -> str:
    """Every metric name."""
    rows = ["| metric | meaning |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in METRICS.items())]
    return "\n".join([*rows, ""])


def algorithms() -> str:
    """What each algorithm is and sets."""
    rows = ["| `algorithm` | what | from | sets, unless told otherwise |", "| --- | --- | --- | --- |"]
    for name, a in ALGORITHMS.items():
        paper = f"[arXiv:{a.paper}](https://arxiv.org/abs/{a.paper})" if a.paper else ""
        sets = ", ".join(f"`{key}: {str(value).lower()}`" for key, value in a.defaults.items())
        rows.append(f"| `{name}` | {a.title} | {paper} | {sets} |")
    return "\n".join([*rows, ""])


def options() -> str:
    """Which option has an effect with which algorithm."""
    rows = [f"| option | {' | '.join(ALGORITHMS)} | only with |", "| --- |" + " :-: |" * len(ALGORITHMS) + " --- |"]
    for name, option in OPTIONS.items():
        path, needed = keys()[name].path, keys()[option.needs].path if option.needs else ""
        marks = " | ".join("●" if a in option.algorithms else "" for a in ALGORITHMS)
        wanted = " or ".join(str(v).lower() for v in option.values) or "set"
        rows.append(f"| `{path}` | {marks} | {f'`{needed}` {wanted}' if needed else ''} |")
    return "\n".join([*rows, ""])


def _line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


PARTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "fields": fields,
    "variables": variables,
    "presets": shipped,
    "metrics": metrics,
    "algorithms": algorithms,
    "options": options,
    "stock": stock,
}

if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
        sys.stderr.write(f"wrote {page}\n")
