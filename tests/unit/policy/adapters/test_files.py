"""Adapters that don't fit: other names, too few weights, too many, other shapes, damaged, or none at all."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cuarl.errors import CheckpointError
from cuarl.policy.adapters.files import exchange, expected_shapes, is_untrained, write
from cuarl.policy.adapters.hotswap import swap_adapter
from cuarl.policy.load import check_adapter, load_policy
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.spec import LoraSpec, ModelSpec

Weights = dict[str, torch.Tensor]
FILE = "adapter_model.safetensors"


def _prefix(weights: Weights) -> Weights:
    return {k.replace("base_model.model.model.", "base_model.model."): v for k, v in weights.items()}


def _two_thirds(weights: Weights) -> Weights:
    return dict(list(weights.items())[: len(weights) * 2 // 3])


def _one_more(weights: Weights) -> Weights:
    return weights | {"base_model.model.model.visual.blocks.0.attn.qkv.lora_A.weight": torch.ones(4, 32)}


def _one_renamed(weights: Weights) -> Weights:
    name = min(weights)
    return {("x." + k if k == name else k): v for k, v in weights.items()}


def _smaller(weights: Weights) -> Weights:
    return {k: (v[:2] if "lora_A" in k else v[:, :2]).contiguous() for k, v in weights.items()}


def _empty(weights: Weights) -> Weights:
    return {}


MISFITS = {
    "another prefix": (_prefix, r"matched 0 of 42 weights \(missing: .*lora_A\.weight and 41 more; left over: "),
    "a third is missing": (_two_thirds, r"matched 28 of 42 weights \(missing: base_model.*and 13 more\)"),
    "one is left over": (
        _one_more,
        r"matched 42 of 42 weights \(left over: base_model.*visual.*lora_A(\.default)?\.weight\)",
    ),
    "one is renamed": (_one_renamed, r"matched 41 of 42 weights \(missing: [^;]*; left over: x\.base_model"),
    "another rank": (_smaller, r"size mismatch for base_model"),
    "no weights": (_empty, r"matched 0 of 42"),
}


@pytest.fixture(params=MISFITS)
def misfit(request: pytest.FixtureRequest, adapted: QwenVLPolicy, tmp_path: Path) -> tuple[Path, str]:
    """A folder with such an adapter, and what is said of it."""
    change, says = MISFITS[request.param]
    return _changed(adapted, tmp_path / "misfit", change), says


def _changed(policy: QwenVLPolicy, folder: Path, change: Callable[[Weights], Weights]) -> Path:
    write(policy.model, folder)
    save_file(change(load_file(folder / FILE)), folder / FILE)
    return folder


def test_a_misfit_is_not_loaded(misfit: tuple[Path, str], qwen3_folder: Path) -> None:
    folder, says = misfit
    for train in ("adapter", "nothing"):
        with pytest.raises(CheckpointError, match=says) as caught:
            load_policy(ModelSpec(model=str(qwen3_folder), adapter=str(folder), train=train))
        assert caught.value.where == str(folder) and len(str(caught.value)) < 1000


def test_a_misfit_is_told_by_the_models_configuration_alone(misfit: tuple[Path, str], qwen3_folder: Path) -> None:
    folder, says = misfit
    with pytest.raises(CheckpointError, match=says):
        check_adapter(ModelSpec(model=str(qwen3_folder), adapter=str(folder)))


def test_a_misfit_is_not_exchanged_and_changes_nothing(misfit: tuple[Path, str], adapted: QwenVLPolicy) -> None:
    folder, says = misfit
    before = _values(adapted)
    with pytest.raises(CheckpointError, match=says):
        swap_adapter(adapted, folder, lambda: pytest.fail("it has the same shape by its settings"))
    assert _values(adapted).keys() == before.keys()
    assert all(torch.equal(v, before[n]) for n, v in _values(adapted).items())


def test_what_fits_is_exchanged_for_all_of_it(adapted: QwenVLPolicy, qwen3_folder: Path, tmp_path: Path) -> None:
    write(adapted.model, tmp_path)
    other = load_policy(ModelSpec(model=str(qwen3_folder), lora=LoraSpec(rank=4, seed=9), train="adapter"))
    assert swap_adapter(other, tmp_path, lambda: pytest.fail("no need to load it anew")) is other
    assert all(torch.equal(v, _values(other)[n]) for n, v in _values(adapted).items())
    check_adapter(ModelSpec(model=str(qwen3_folder), adapter=str(tmp_path)))


def test_an_adapter_of_another_model_names_its_own(adapted: QwenVLPolicy, qwen25_folder: Path, tmp_path: Path) -> None:
    write(adapted.model, tmp_path)
    settings = json.loads((tmp_path / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps(settings | {"base_model_name_or_path": "org/other"}))
    _changed_in_place(tmp_path, _two_thirds)
    with pytest.raises(CheckpointError) as caught:
        exchange(adapted.model, tmp_path)
    assert caught.value.hint == "put it on the model that it was made for: --model-name org/other"


@pytest.mark.parametrize(
    ("content", "says"), [(None, "has no weights"), (b"cos\nsystem\n(S'exit 1'\ntR.", "can't be read|does not fit")]
)
def test_damage_is_named(
    content: bytes | None, says: str, adapted: QwenVLPolicy, qwen3_folder: Path, tmp_path: Path
) -> None:
    write(adapted.model, tmp_path)
    (tmp_path / FILE).unlink()
    if content is not None:
        (tmp_path / "adapter_model.bin").write_bytes(content)
    with pytest.raises(CheckpointError, match=says):
        load_policy(ModelSpec(model=str(qwen3_folder), adapter=str(tmp_path)))
    with pytest.raises(CheckpointError, match=says):
        exchange(adapted.model, tmp_path)


def test_what_is_handed_over_is_read_again(adapted: QwenVLPolicy, tmp_path: Path) -> None:
    write(adapted.model, tmp_path)
    assert load_file(tmp_path / FILE).keys() == expected_shapes(adapted.model).keys()

    class Loses:
        """A model whose writing leaves one weight out, as one in parts does."""

        def __getattr__(self, name: str) -> Any:
            return getattr(adapted.model, name)

        def save_pretrained(self, folder: str, **options: Any) -> None:
            adapted.model.save_pretrained(folder, **options)
            _changed_in_place(Path(folder), lambda w: dict(list(w.items())[1:]))

    with pytest.raises(CheckpointError, match="matched 41 of 42"):
        write(Loses(), tmp_path / "partial")


def test_an_adapter_that_changes_nothing_is_told_apart(adapted: QwenVLPolicy, qwen3_folder: Path) -> None:
    fresh = load_policy(ModelSpec(model=str(qwen3_folder), lora=LoraSpec(rank=4), train="adapter"))
    assert is_untrained(_values(fresh)) and not is_untrained(_values(adapted))
    one = _values(fresh)
    next(v for n, v in one.items() if "lora_B" in n)[0, 0] = 1e-8
    assert not is_untrained(one)
    assert not is_untrained({"ia3_l": torch.zeros(3)})


def _changed_in_place(folder: Path, change: Callable[[Weights], Weights]) -> None:
    save_file(change(load_file(folder / FILE)), folder / FILE)


def _values(policy: QwenVLPolicy) -> Weights:
    return {n: p.detach().clone() for n, p in policy.model.named_parameters() if "lora_" in n}


def test_a_folder_without_an_adapter_is_not_looked_for_elsewhere(adapted: QwenVLPolicy, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "org", ignore_errors=True)
    for take in (lambda f: exchange(adapted.model, f), lambda f: swap_adapter(adapted, f, lambda: adapted)):
        with pytest.raises(CheckpointError, match="no adapter here"):
            take(tmp_path / "org")
