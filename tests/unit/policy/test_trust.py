"""Code that comes with a model runs only where that was said."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cuarl.cli.app import run
from cuarl.errors import CuarlError, PrerequisiteError
from cuarl.policy.load import check_adapter, load_policy, load_renderer
from cuarl.policy.spec import ModelSpec

CODE = """
import pathlib
from transformers import PretrainedConfig

pathlib.Path(__file__).resolve()
pathlib.Path({mark!r}).write_text("it ran")

class Own(PretrainedConfig):
    model_type = "own"
"""


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the model's code writes where it runs; an eager person says yes to all questions."""
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    return tmp_path / "mark"


@pytest.fixture
def evil(tmp_path: Path, mark: Path) -> str:
    folder = tmp_path / "evil"
    folder.mkdir()
    settings = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}, "architectures": ["Own"]}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "own.py").write_text(CODE.format(mark=str(mark)))
    (folder / "adapter_config.json").write_text("{}")
    return str(folder)


@pytest.mark.parametrize("load", [load_policy, load_renderer, check_adapter])
def test_a_models_code_is_not_run_and_nobody_is_asked(
    load: Callable[[ModelSpec], object], evil: str, mark: Path
) -> None:
    with pytest.raises(PrerequisiteError, match="code of its own") as caught:
        load(ModelSpec(model=evil, adapter=evil if load is check_adapter else None))
    assert caught.value.where == evil and "--trust-remote-code" in str(caught.value.hint)
    assert not mark.exists()


def test_it_runs_where_that_was_said(evil: str, mark: Path) -> None:
    with pytest.raises(CuarlError, match="a own model does not turn pictures"):
        load_policy(ModelSpec(model=evil, trust_remote_code=True))
    assert mark.read_text() == "it ran"


@pytest.mark.parametrize(
    "command",
    [
        ["rollout", "--tasks", "settings", "--limit", "1"],
        ["eval", "base", "--tasks", "settings", "--episodes", "1"],
        ["train", "--tasks", "settings", "--max-steps", "1"],
    ],
    ids=lambda c: c[0],
)
def test_commands_have_an_option_for_it(
    command: list[str],
    evil: str,
    mark: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [*command, "--model-name", evil, "--renderer-name", "json"]
    assert run(given) == 4 and "--trust-remote-code" in capsys.readouterr().err
    assert not mark.exists()
    assert run([*given, "--trust-remote-code"]) == 2
    assert "does not turn pictures" in capsys.readouterr().err and mark.exists()
