"""The examples do what their comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuarl.cli.app import run
from tests.integration.rollout_place import bare

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.integration
@pytest.mark.parametrize(
    "command",
    [
        ("train", "-c", "settings-easy.yaml", "--dry-run"),
        ("tasks", "validate", "my-tasks.yaml", "--seeds", "2"),
    ],
    ids=["experiment", "tasks"],
)
def test_example_runs(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare(monkeypatch, EXAMPLES)
    assert run(command) == 0, capsys.readouterr().err
