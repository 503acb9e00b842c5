"""A base in four bits by the command line: planned, trained, verified, resumed, evaluated, merged."""

import json

import pytest

from tests.integration.rollout_place import Place, bare
from tests.integration.small_model import qwen3_folder, qwen25_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import LUCK, checkpoint, measured, options  # noqa: F401

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    bare(monkeypatch, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "luck.py").write_text(LUCK)
    return Place(tmp_path, capsys)


def test_a_run_on_four_bits_is_what_it_says(place, options, tmp_path):  # noqa: F811
    asked = [*options, "--quantization", "nf4", "--skip-baseline", "--eval-every", "0"]
    planned = place.cuarl(*asked, "--dry-run")
    assert planned.code == 0 and "million of them in four bits" in planned.err + planned.out

    whole = place.cuarl(*asked, "--name", "whole")
    assert whole.code == 0, whole.err
    run = tmp_path / "runs" / "whole"
    facts = json.loads((run / "checkpoints" / "step-000004" / "cuarl.json").read_text())
    assert facts["quantization"] == "nf4"

    verified = place.cuarl("rollout", "verify", "whole")
    assert verified.code == 0, verified.err
    assert "policy versions" in verified.err and "the bar is 0.0001 (float32)" in verified.err

    cut = place.cuarl(*asked, "--name", "cut", "--max-steps", "2")
    assert cut.code == 0, cut.err
    resumed = place.cuarl("train", "--resume", "cut", "--max-steps", "4")
    assert resumed.code == 0, resumed.err
    mine, theirs = (checkpoint(tmp_path / "runs" / name) for name in ("cut", "whole"))
    assert mine["adapter_model.safetensors"] == theirs["adapter_model.safetensors"]

    # outside of its run it is still known what the adapter was trained on
    assert place.cuarl("model", "export", "whole", "--out", str(tmp_path / "adapter")).code == 0
    seen = place.cuarl("eval", str(tmp_path / "adapter"), "--episodes", "2", "--tasks", "tasks.json")
    assert seen.code == 0, seen.err
    merged = place.cuarl("model", "merge", "whole", "--out", str(tmp_path / "merged"), "--dtype", "float32")
    assert merged.code == 0, merged.err
    card = (tmp_path / "merged" / "README.md").read_text()
    assert "Base: the numbers that its four bits (nf4) stood for" in card


def test_it_trains_an_adapter_alone(place, options):  # noqa: F811
    refused = place.cuarl(*options, "--quantization", "nf4", "--no-use-lora")
    assert refused.code == 2 and "only an adapter can be trained" in refused.err and "--use-lora" in refused.err
