"""The Python of docs/start/python.md and of the notebook runs as it stands there."""

import ast
import asyncio
import inspect
import json
import re
from pathlib import Path

import pytest

import cuarl
from tests.integration.rollout_place import bare

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    bare(monkeypatch, tmp_path)


def test_three_steps_on_two_tasks_with_a_reward_and_an_environment_take_fifteen_lines():
    block = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "start" / "python.md").read_text(), re.DOTALL)[0]
    assert len([line for line in block.splitlines() if line]) <= 15
    names = {"__name__": "__main__"}
    exec(block, names)
    run = names["run"]
    assert [row["step"] for row in run.metrics] == [1, 2, 3]
    trained = [row for row in run.table() if row["purpose"] == "train"]
    assert len(trained) == 24 and len({row["task_id"] for row in trained}) == 2
    assert all(row["reward"] == pytest.approx(row["success"] - 0.1 * row["turns"]) for row in trained)
    assert cuarl.load_run().name == run.name


async def played(cells, names):
    """Run cells as a notebook does: in one namespace, in a running event loop, with ``await`` at the top."""
    shown = []
    for cell in cells:
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        for part in (tree, ast.Expression(last.value) if last else None):
            if part is not None and getattr(part, "body", None):
                mode = "eval" if isinstance(part, ast.Expression) else "exec"
                value = eval(compile(part, "cell", mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
                value = await value if inspect.isawaitable(value) else value
                shown += [value] if mode == "eval" else []
    return shown


def test_the_notebook_runs_from_top_to_bottom_in_a_running_event_loop():
    notebook = json.loads((ROOT / "examples" / "notebook.ipynb").read_text())
    assert all(not cell.get("outputs") for cell in notebook["cells"]), "kept without outputs"
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {"__name__": "__main__"}
    rates, rewards, row, (action, after), picture = asyncio.run(played(cells, names))
    assert rates[1] <= rates[0] <= rates[2]
    assert len(rewards) == 3 and row["task_id"] in ("lamp_on", "lamp_off")
    assert hasattr(action, "kind") or action is None
    assert 0 <= after <= 1 and picture.size == (192, 384)
