"""Which adapters are handed over."""

import json

import pytest
import torch
from safetensors.torch import save_file

from cuarl.cli.app import run
from cuarl.train.card import About, model_card


def adapter(folder, *, weights=None, **settings):
    folder.mkdir()
    weights = weights or {"q.lora_A.weight": torch.ones(2, 4), "q.lora_B.weight": torch.ones(4, 2)}
    save_file(weights, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"r": 12, "bias": "none", **settings}))
    (folder / "cuarl.json").write_text(json.dumps({"run": "mine", "base_model": "org/model", "step": 3}))
    (folder / "README.md").write_text("old")
    return folder


@pytest.fixture
def exported(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def export(folder):
        code = run(["model", "export", str(folder), "--out", "out", "--json"])
        return code, capsys.readouterr()

    return export


def test_an_adapter_is_handed_over_with_a_card_of_its_own(exported, tmp_path):
    code, said = exported(adapter(tmp_path / "adapter"))
    assert code == 0, said.err
    done = json.loads(said.out)
    assert (done["rank"], done["path"]) == (12, "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# mine, step 3" in card and "--max-lora-rank 16 --lora-modules mine=" in card and "Not evaluated" in card
    assert {p.name for p in (tmp_path / "out").iterdir()} == {p.name for p in (tmp_path / "adapter").iterdir()}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"weights": {"q.lora_A.weight": torch.tensor([float("nan")])}}, "weights that are not numbers, q.lora_A"),
        ({"weights": {"head.weight": torch.ones(2)}}, "weights that are not LoRA's, head.weight"),
        ({"modules_to_save": ["head"]}, "uses modules_to_save"),
    ],
)
def test_an_adapter_that_others_cannot_take_is_not(exported, tmp_path, changes, says):
    code, said = exported(adapter(tmp_path / "adapter", **changes))
    assert code == 1 and says in said.err
    assert not (tmp_path / "out").exists()


def test_what_was_not_trained_here_is_refused(exported, tmp_path):
    folder = adapter(tmp_path / "adapter")
    (folder / "cuarl.json").unlink()
    code, said = exported(folder)
    assert code == 2 and "no checkpoint of a training run" in said.err


def test_a_card_says_how_to_serve_an_adapter_only_where_that_is_known():
    about = About(run="mine", base_model="org/model")
    assert "vllm" not in model_card(about, 1, adapter=True, metrics={})
    assert "--max-lora-rank 64 " in model_card(about, 1, adapter=True, metrics={}, rank=33)
