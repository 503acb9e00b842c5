"""Which adapters are handed over."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from cuarl.cli.app import run
from cuarl.policy.adapters.files import write
from cuarl.policy.load import load_policy
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.train.card import About, model_card

FILE = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of an adapter on the shipped base."""
    folder = tmp_path_factory.mktemp("trained")
    policy = load_policy(ModelSpec(lora=LoraSpec(rank=12), train="adapter"))
    for name, p in policy.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(p, 0.01)
    write(policy.model, folder)
    (folder / "cuarl.json").write_text(json.dumps({"run": "mine", "base_model": "tiny", "step": 3}))
    (folder / "README.md").write_text("old")
    return folder


@pytest.fixture
def adapter(trained, tmp_path):
    """Copies it with other weights or settings."""

    def make(*, weights=lambda w: w, **settings):
        folder = shutil.copytree(trained, tmp_path / "adapter")
        save_file(weights(load_file(folder / FILE)), folder / FILE)
        known = json.loads((folder / "adapter_config.json").read_text())
        (folder / "adapter_config.json").write_text(json.dumps(known | settings))
        return folder

    return make


@pytest.fixture
def exported(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def export(folder, *options, command="export"):
        code = run(["model", command, str(folder), "--out", "out", "--json", *options])
        return code, capsys.readouterr()

    return export


def test_an_adapter_is_handed_over_with_a_card_of_its_own(exported, adapter, tmp_path):
    folder = adapter()
    code, said = exported(folder)
    assert code == 0, said.err
    done = json.loads(said.out)
    assert (done["rank"], done["path"]) == (12, "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# mine, step 3" in card and "--max-lora-rank 16 --lora-modules mine=" in card and "Not evaluated" in card
    assert {p.name for p in (tmp_path / "out").iterdir()} == {p.name for p in folder.iterdir()}


def first(value, kind=".lora_A"):
    """A change of one weight."""
    return lambda w: {k: (value(v) if k == next(n for n in w if kind in n) else v) for k, v in w.items()}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"weights": first(lambda v: v * float("nan"))}, "weights that are not numbers, base_model"),
        ({"weights": lambda w: w | {"head.weight": torch.ones(2)}}, "weights that are not LoRA's, head.weight"),
        ({"modules_to_save": ["head"]}, "uses modules_to_save"),
        ({"weights": lambda w: {k.replace("model.model.", "model."): v for k, v in w.items()}}, "matched 0 of 56"),
        ({"weights": lambda w: dict(list(w.items())[:38])}, "matched 38 of 56 weights"),
    ],
)
def test_an_adapter_that_others_cannot_take_is_not(exported, adapter, tmp_path, changes, says):
    code, said = exported(adapter(**changes))
    assert code == 1 and says in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["export", "merge"])
def test_an_adapter_that_changes_nothing_is_handed_over_only_if_asked(exported, adapter, tmp_path, command):
    folder = adapter(weights=lambda w: {k: torch.zeros_like(v) if "lora_B" in k else v for k, v in w.items()})
    code, said = exported(folder, command=command)
    assert code == 1 and "the adapter changes nothing" in said.err and "--untrained" in said.err
    assert not (tmp_path / "out").exists()
    code, said = exported(folder, "--untrained", command=command)
    assert code == 0 and (tmp_path / "out").is_dir(), said.err


def test_a_misfit_is_neither_merged_nor_measured(exported, adapter, tmp_path, capsys):
    folder = adapter(weights=lambda w: {k.replace("model.model.", "model."): v for k, v in w.items()})
    code, said = exported(folder, command="merge")
    assert code == 1 and "matched 0 of 56 weights" in said.err and not (tmp_path / "out").exists()
    code = run(["eval", str(folder), "--tasks", "settings", "--episodes", "1", "--max-turns", "1"])
    assert code == 1 and "matched 0 of 56 weights" in capsys.readouterr().err


def test_what_was_not_trained_here_is_refused(exported, adapter):
    folder = adapter()
    (folder / "cuarl.json").unlink()
    code, said = exported(folder)
    assert code == 2 and "no checkpoint of a training run" in said.err


def test_a_card_says_how_to_serve_an_adapter_only_where_that_is_known():
    about = About(run="mine", base_model="org/model")
    assert "vllm" not in model_card(about, 1, adapter=True, metrics={})
    assert "--max-lora-rank 64 " in model_card(about, 1, adapter=True, metrics={}, rank=33)
