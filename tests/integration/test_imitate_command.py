"""``cuarl model imitate``: a folder that can be evaluated and imitated from again, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from cuarl.cli.app import app
from cuarl.policy import tiny

SHORT = ("--steps", "2", "--batch", "2", "--workers", "1", "--device", "cpu", "--tasks", "settings_train")


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["model", "imitate", *arguments])
    return result.exit_code, result.output if result.exception is None else str(result.exception)


def test_all_weights_learn_and_the_folder_is_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = _run(str(tiny.path()), "--out", "wide", *SHORT)
    assert code == 0, said
    before, after = (load_file(folder / "model.safetensors") for folder in (tiny.path(), tmp_path / "wide"))
    assert before.keys() <= after.keys()
    changed = [name for name in before if not torch.equal(before[name].float(), after[name].float())]
    assert any("visual" in name for name in changed)
    assert any("language_model" in name for name in changed)
    facts = json.loads((tmp_path / "wide" / "imitate.json").read_text())
    assert facts["step"] == 2
    assert tiny.is_own(str(tmp_path / "wide"))
    code, said = _run("wide", "--out", "again", *SHORT)
    assert code == 0, said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((str(tiny.path()), "--out", "."), "is there already"),
        ((str(tiny.path()), "--out", "new", "--steps", "2", "--minutes", "1"), "not both"),
        ((str(tiny.path()), "--out", "new", "--tasks", "desktop_train"), "is a task of desktop"),
        (("nowhere", "--out", "new", *SHORT), "was not made by cuarl model build"),
    ],
)
def test_what_can_not_be_done_is_refused_at_once(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = _run(*arguments)
    assert code != 0
    assert told in " ".join(said.split())
    assert not (tmp_path / "new").exists()
