import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForImageTextToText

from cuarl.errors import CheckpointError, ConfigError, PrerequisiteError
from cuarl.policy import tiny
from cuarl.policy.adapters.lora import target_pattern
from cuarl.policy.load import load_policy, policy_name, resolve
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.pictures import row, screen


def _adapted_modules(policy: QwenVLPolicy) -> set[str]:
    return {
        n.split(".lora_A")[0].split("base_model.model.")[-1]
        for n, _ in policy.model.named_parameters()
        if "lora_A" in n
    }


def _targets(policy: QwenVLPolicy, **spec: Any) -> set[str]:
    pattern = target_pattern(policy.base, LoraSpec(**spec))
    found = {n: m for n, m in policy.base.named_modules() if re.fullmatch(pattern, n)}
    assert all(isinstance(m, torch.nn.Linear) for m in found.values())
    return set(found)


@pytest.mark.parametrize(
    ("targets", "leaves"),
    [
        ("attention", {"q_proj", "k_proj", "v_proj", "o_proj"}),
        ("mlp", {"gate_proj", "up_proj", "down_proj"}),
        ("attention+mlp", {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}),
        ("all-linear", {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}),
        (("v_proj",), {"v_proj"}),
    ],
)
def test_b41_lora_sits_on_the_chosen_layers_of_the_language_model_alone(
    policy: QwenVLPolicy, targets: Any, leaves: set[str]
) -> None:
    found = _targets(policy, targets=targets)
    assert {n.rsplit(".", 1)[-1] for n in found} == leaves
    layers = policy.base.config.get_text_config().num_hidden_layers
    assert len(found) == layers * len(leaves)
    assert all(".language_model." in n for n in found), "some towers use the same names"


def test_lora_takes_the_vision_tower_in_when_asked(policy: QwenVLPolicy) -> None:
    both = _targets(policy, targets="attention", vision=True)
    tower = both - _targets(policy, targets="attention")
    linears = {n for n, m in policy.vision.visual.named_modules() if isinstance(m, torch.nn.Linear)}
    assert {n.split(".visual.", 1)[1] for n in tower} == linears
    assert {n.rsplit(".", 1)[-1] for n in _targets(policy, targets=("qkv",), vision=True)} == {"qkv"}


def test_an_unknown_lora_target_is_refused_with_a_suggestion(qwen3: QwenVLPolicy) -> None:
    with pytest.raises(ConfigError, match='"q_porj" is no linear layer of this model \\(did you mean "q_proj"'):
        target_pattern(qwen3.base, LoraSpec(targets=("q_porj",)))


def test_a_fresh_adapter_depends_on_its_seed_alone_and_changes_nothing_yet(
    qwen3_folder: Path, qwen3: QwenVLPolicy
) -> None:
    def fresh(seed: int) -> QwenVLPolicy:
        torch.rand(seed + 1)  # the global state must not matter
        spec = ModelSpec(
            model=str(qwen3_folder), lora=LoraSpec(rank=2, targets=("q_proj",), seed=seed), train="adapter"
        )
        return load_policy(spec)

    first, again, other = fresh(0), fresh(0), fresh(1)
    weights = [next(p for n, p in m.model.named_parameters() if "lora_A" in n) for m in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert {p.requires_grad for n, p in first.model.named_parameters() if "lora" in n} == {True}
    assert {p.requires_grad for n, p in first.model.named_parameters() if "lora" not in n} == {False}
    rows = [row(qwen3, "go", [screen(1)], [40, 41])]
    scores = [Scorer(m)(m.collate(rows)).logprobs for m in (qwen3, first)]
    assert torch.equal(scores[0], scores[1])


def test_a_saved_adapter_loads_here_and_with_plain_peft(
    adapted: QwenVLPolicy, qwen3_folder: Path, tmp_path: Path
) -> None:
    adapted.model.save_pretrained(tmp_path / "best")
    rows = [row(adapted, "go", [screen(1)], [40, 41])]
    expected = Scorer(adapted)(adapted.collate(rows)).logprobs
    spec = ModelSpec(model=str(qwen3_folder), adapter=str(tmp_path / "best"))
    frozen, trained = load_policy(spec), load_policy(spec.model_copy(update={"train": "adapter"}))
    for loaded in (frozen, trained):
        assert torch.equal(Scorer(loaded)(loaded.collate(rows)).logprobs, expected)
        assert _adapted_modules(loaded) == _adapted_modules(adapted)
    assert not list(frozen.parameters()) and len(list(trained.parameters())) == len(list(adapted.parameters()))
    assert frozen.name == f"{qwen3_folder.name}+best"
    base = AutoModelForImageTextToText.from_pretrained(qwen3_folder)
    plain = PeftModel.from_pretrained(base, tmp_path / "best")
    ids = torch.tensor([[1, 2, 3, 4]])
    assert torch.allclose(plain(input_ids=ids).logits, adapted.model(input_ids=ids).logits, atol=1e-6)


def test_full_fine_tuning_leaves_the_vision_tower_alone_unless_asked(qwen3_folder: Path) -> None:
    policy = load_policy(ModelSpec(model=str(qwen3_folder), train="full"))
    trained = {n for n, p in policy.model.named_parameters() if p.requires_grad}
    assert trained and not any(".visual." in n for n in trained)
    assert not policy.vision.trained and not policy.has_adapter
    with pytest.raises(ConfigError, match="does not keep its base"), policy.reference():
        pass


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adapter": "x", "lora": LoraSpec()}, "loaded or made, not both"),
        ({"train": "adapter"}, "no adapter to train"),
        ({"train": "full", "lora": LoraSpec()}, "trains the base itself"),
    ],
)
def test_combinations_that_mean_nothing_are_refused(qwen3_folder: Path, changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_policy(ModelSpec(model=str(qwen3_folder), **changes))


def test_a_missing_or_misfit_adapter_is_a_checkpoint_error(
    qwen3_folder: Path, qwen25_folder: Path, adapted: QwenVLPolicy, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="no adapter here"):
        load_policy(ModelSpec(model=str(qwen3_folder), adapter=str(tmp_path / "none")))
    adapted.model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="does not fit"):
        load_policy(ModelSpec(model=str(qwen25_folder), adapter=str(tmp_path)))


def test_pixel_limits_replace_the_checkpoints(qwen3_folder: Path) -> None:
    policy = load_policy(ModelSpec(model=str(qwen3_folder), max_pixels=64 * 64))
    assert policy.images.resized(128, 128) == (64, 64)


def test_a_model_name_is_the_last_part_of_its_path() -> None:
    assert policy_name(ModelSpec(model="Qwen/Qwen3-VL-8B-Instruct")) == "Qwen3-VL-8B-Instruct"
    assert policy_name(ModelSpec(model="tiny", adapter="runs/a/step-000010/")) == "tiny+step-000010"


def test_tiny_is_the_served_base(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tiny, "path", lambda: tmp_path)
    with pytest.raises(PrerequisiteError, match="not built") as caught:
        resolve(ModelSpec())
    assert caught.value.hint == f"cuarl model build --out {tmp_path}"
    (tmp_path / "config.json").write_text("{}")
    assert resolve(ModelSpec()) == (str(tmp_path), True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("tiney", 'no model "tiney" \\(did you mean "tiny"', id="misspelt"),
        pytest.param("my-bass", 'did you mean "my-base"', id="a folder nearby"),
        pytest.param("./models/x", 'no model "./models/x"', id="a path that is not there"),
        pytest.param("a/b/c", 'no model "a/b/c"', id="no hub id"),
    ],
)
def test_what_can_not_be_a_hub_id_is_refused_without_a_look_at_the_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "my-base").mkdir()
    (tmp_path / "my-base" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        resolve(ModelSpec(model=name))


def test_a_folder_without_a_model_says_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no model in it"):
        resolve(ModelSpec(model=str(tmp_path)))
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError) as caught:
        resolve(ModelSpec(model=str(tmp_path)))
    assert caught.value.hint == f"--load-checkpoint-path {tmp_path}"


def test_a_hub_id_that_is_not_cached_is_a_prerequisite_when_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert resolve(ModelSpec(model="nobody/nothing")) == ("nobody/nothing", True)
    with pytest.raises(PrerequisiteError, match='no model "nobody/nothing" in the local cache') as caught:
        load_policy(ModelSpec(model="nobody/nothing"))
    assert caught.value.hint == "hf download nobody/nothing"


def _other_settings(folder: Path, made: Path, **changes: Any) -> Path:
    """``folder`` with other values in its config.json; a dict is merged."""
    config = json.loads((folder / "config.json").read_text())
    for name, value in changes.items():
        config[name] = config[name] | value if isinstance(value, dict) else value
    for file in folder.iterdir():
        if file.name != "config.json":
            (made / file.name).symlink_to(file)
    (made / "config.json").write_text(json.dumps(config))
    return made


def test_a_model_that_takes_no_pictures_is_refused_by_its_type(qwen3_folder: Path, tmp_path: Path) -> None:
    folder = _other_settings(qwen3_folder, tmp_path, model_type="llama")
    with pytest.raises(ConfigError, match="a llama model does not turn pictures and text into text"):
        load_policy(ModelSpec(model=str(folder)))


def test_weights_that_are_missing_are_not_made_up(qwen3_folder: Path, tmp_path: Path) -> None:
    folder = _other_settings(qwen3_folder, tmp_path, text_config={"num_hidden_layers": 4})
    with pytest.raises(CheckpointError, match=r"11 weights of the model are missing, .*layers\.3"):
        load_policy(ModelSpec(model=str(folder)))


def test_a_damaged_folder_is_a_prerequisite(qwen3_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((qwen3_folder / "config.json").read_text())
    with pytest.raises(PrerequisiteError, match="no tokenizer"):
        load_policy(ModelSpec(model=str(tmp_path)))
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(PrerequisiteError, match="can't be read"):
        load_policy(ModelSpec(model=str(tmp_path)))


def test_a_bound_on_keys_and_values_is_refused_where_nothing_keeps_them(qwen3_folder: Path) -> None:
    with pytest.raises(ConfigError, match="kv_cache_gib has no effect here"):
        load_policy(ModelSpec(model=str(qwen3_folder), device="cpu", dtype="bfloat16", kv_cache_gib=1.0))
