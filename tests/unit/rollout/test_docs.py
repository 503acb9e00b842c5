"""The programs in the documentation run, and its tables name what there is."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import get_args

import pytest

from cuarl.rollout import reward
from cuarl.types import Failure, StopReason

DOCS = Path(__file__).parents[3] / "docs" / "guides"


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


def test_program_of_the_rollout_page_runs(tmp_path, capsys):
    (program,) = programs("rollouts.md")
    (tmp_path / "program.py").write_text(program)
    runpy.run_path(str(tmp_path / "program.py"))
    assert capsys.readouterr().out == "[1.0, 1.0, 1.0, 1.0]\n"


def test_reward_of_the_reward_page_is_a_plug_in(tmp_path, monkeypatch):
    (program,) = programs("rewards.md")
    (tmp_path / "documented_rewards.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    assert reward.get("documented_rewards:brisk").__name__ == "brisk"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("rollouts.md", list(StopReason)),
        ("rollouts.md", [b for b in get_args(Failure.model_fields["boundary"].annotation) if b != "rollout"]),
        ("rewards.md", list(reward.BUILTIN)),
    ],
)
def test_tables_name_everything(page, names):
    first_column = re.findall(r"^\| `(\w+)`", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(names) <= set(first_column)
