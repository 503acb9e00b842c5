"""Adapters that are handed to a server: readable by its user, and tried with one that changes nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import torch

from cuarl.policy.adapters.files import is_untrained, put_on, weights_of
from cuarl.policy.handover import publish, trial_adapter
from cuarl.policy.load import load_policy
from cuarl.policy.spec import LoraSpec, ModelSpec


@pytest.fixture
def umask() -> None:
    """The strictest that a user may have."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def modes(folder: Path) -> set[str]:
    return {stat.filemode(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


@pytest.mark.usefixtures("umask")
def test_adapter_that_is_handed_over_is_for_every_user_to_read(qwen3_folder: Path, tmp_path: Path) -> None:
    policy = load_policy(ModelSpec(model=str(qwen3_folder), device="cpu", lora=LoraSpec(rank=2), train="adapter"))
    publish(policy.model, tmp_path / "step-000001")
    assert modes(tmp_path / "step-000001") == {"drwxr-xr-x", "-rw-r--r--"}
    assert (tmp_path / "step-000001" / "adapter_model.safetensors").is_file()


@pytest.mark.usefixtures("umask")
def test_adapter_on_trial_has_the_shape_of_the_trained_one_and_changes_nothing(
    qwen3_folder: Path, tmp_path: Path
) -> None:
    spec = ModelSpec(model=str(qwen3_folder), device="cpu", lora=LoraSpec(rank=3, alpha=7), train="adapter")
    trained = load_policy(spec)
    with trial_adapter(spec, tmp_path / "runs") as folder:
        weights = weights_of(folder)
        assert is_untrained(weights)
        assert not any(value.any() for value in weights.values())
        assert modes(folder) == {"drwxr-xr-x", "-rw-r--r--"}
        put_on(load_policy(ModelSpec(model=str(qwen3_folder), device="cpu")).model, folder)
    publish(trained.model, tmp_path / "trained")
    own = weights_of(tmp_path / "trained")
    assert {n: w.shape for n, w in weights.items()} == {n: w.shape for n, w in own.items()}
    assert list((tmp_path / "runs").iterdir()) == []


def test_adapter_that_training_starts_from_is_what_is_tried(qwen3_folder: Path, tmp_path: Path) -> None:
    policy = load_policy(ModelSpec(model=str(qwen3_folder), device="cpu", lora=LoraSpec(rank=2), train="adapter"))
    publish(policy.model, tmp_path / "start")
    (tmp_path / "start" / "state.pt").write_bytes(b"of the optimiser, and large")
    spec = ModelSpec(model=str(qwen3_folder), device="cpu", adapter=str(tmp_path / "start"), train="adapter")
    with trial_adapter(spec, tmp_path) as folder:
        assert {path.name for path in folder.iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}
        tried, own = weights_of(folder), weights_of(tmp_path / "start")
        assert all(torch.equal(tried[name], own[name]) for name in own)


def test_folder_of_a_trial_is_gone_after_an_error(qwen3_folder: Path, tmp_path: Path) -> None:
    spec = ModelSpec(model=str(qwen3_folder), device="cpu", lora=LoraSpec(rank=2), train="adapter")
    with pytest.raises(KeyboardInterrupt), trial_adapter(spec, tmp_path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
