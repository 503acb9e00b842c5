"""An adapter merged into its base, for a family of each kind, and a merge that rounds too much."""

from pathlib import Path

import pytest
import torch

from cuarl.errors import CheckpointError, ConfigError
from cuarl.policy.load import load_policy
from cuarl.policy.merge import merge
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.other_families import save_family


def _adapter(model: Path, folder: Path, *, std: float) -> ModelSpec:
    policy = load_policy(ModelSpec(model=str(model), lora=LoraSpec(rank=4), train="adapter"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=std)
    policy.model.save_pretrained(folder)
    return ModelSpec(model=str(model), adapter=str(folder))


@pytest.mark.parametrize("family", ["qwen3", "llava"])
def test_a_merged_folder_says_what_base_and_adapter_say(family: str, qwen3_folder: Path, tmp_path: Path) -> None:
    model = qwen3_folder if family == "qwen3" else save_family(family, tmp_path / "model")
    spec = _adapter(model, tmp_path / "adapter", std=0.1)
    exact = merge(spec, tmp_path / "exact", "float32")
    rounded = merge(spec, tmp_path / "rounded", "bfloat16")
    assert exact.largest < 1e-4 < rounded.largest < rounded.tolerance
    merged = load_policy(ModelSpec(model=str(tmp_path / "rounded"), dtype="auto"))
    assert not merged.has_adapter and type(merged) is type(load_policy(spec))


def test_a_merge_that_rounds_too_much_is_refused(tmp_path: Path) -> None:
    spec = _adapter(save_family("idefics3", tmp_path / "model"), tmp_path / "adapter", std=10.0)
    with pytest.raises(
        CheckpointError, match=r"does not say what base and adapter say: they differ by .* 0\.25 is allowed"
    ):
        merge(spec, tmp_path / "merged", "bfloat16")


def test_a_whole_model_has_nothing_to_merge(qwen3_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no adapter to merge"):
        merge(ModelSpec(model=str(qwen3_folder)), tmp_path / "merged", "float32")
