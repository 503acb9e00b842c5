import json

import pytest

from cuarl.config.load import resolve
from cuarl.errors import ConfigError
from cuarl.workflow.from_config import check_shards, learner_config, model_spec


def test_the_model_is_trained_as_the_configuration_says():
    spec = model_spec(resolve(flags={"lora_rank": 4, "train_vision": True, "seed": 3}), "cpu")
    assert (spec.train, spec.lora.rank, spec.lora.vision, spec.lora.seed) == ("adapter", 4, True, 3)
    custom = {"lora_target_option": "custom", "lora_target_modules": ["q_proj"]}
    assert model_spec(resolve(flags=custom), "cpu").lora.targets == ("q_proj",)
    full = model_spec(resolve(flags={"use_lora": False}), "cpu")
    assert (full.train, full.lora, full.device, full.dtype) == ("full", None, "cpu", "float32")


def test_a_checkpoint_to_start_from_keeps_its_adapter_as_it_is(tmp_path):
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "cuarl.json").write_text(json.dumps({"base_model": "org/base", "step": 7}))
    start = {"load_checkpoint_path": str(tmp_path)}
    spec = model_spec(resolve(flags=start), "cpu")
    assert (spec.model, spec.adapter, spec.lora) == ("org/base", str(tmp_path), None)
    for rank in (4, 16):
        with pytest.raises(ConfigError, match="lora_rank has no effect"):
            model_spec(resolve(flags={**start, "lora_rank": rank}), "cpu")
    whole = tmp_path / "config.json"
    whole.write_text(resolve(flags=start).config.model_dump_json())
    assert model_spec(resolve(files=[whole]), "cpu") == spec, "the file of a run, which has every field, resumes it"
    with pytest.raises(ConfigError, match="use_lora can't be false"):
        model_spec(resolve(flags={**start, "use_lora": False}), "cpu")


def test_a_base_in_four_bits_stays_so_and_is_neither_served_nor_cut(tmp_path):
    assert model_spec(resolve(flags={"quantization": "nf4"}), "cpu").quantization == "nf4"
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "cuarl.json").write_text(json.dumps({"base_model": "org/base", "quantization": "nf4"}))
    start = {"load_checkpoint_path": str(tmp_path)}
    spec = model_spec(resolve(flags=start), "cpu")
    server = {"model_base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(ConfigError, match="trained on a base in four bits"):
        model_spec(resolve(flags={**start, **server}), "cpu")
    assert model_spec(resolve(flags={**start, **server, "quantization": "none"}), "cpu").adapter == str(tmp_path)
    check_shards(spec, False)
    with pytest.raises(ConfigError, match="can't be cut into shards"):
        check_shards(spec, True)


def test_the_learner_is_told_every_field_that_concerns_it():
    fields = {
        "advantage_normalization": "none", "loss_reduction": "constant", "loss_constant_tokens": 9, "clip_low": 0.1,
        "clip_high": 0.3, "kl_penalty_coef": 0.01, "entropy_coef": 0.02, "mask_truncated": True, "num_substeps": 2,
        "micro_batch_tokens": 99, "learning_rate": 1e-3, "lr_schedule": "cosine", "warmup_steps": 5, "adam_eps": 1e-5,
        "max_grad_norm": 0.5, "weight_decay": 0.1, "adam_beta1": 0.8, "adam_beta2": 0.9, "max_steps": 7, "seed": 4,
        "gradient_checkpointing": True, "activation_gib": 1.5, "pack_turns": False, "kl_reference": "start",
    }  # fmt: skip
    told = learner_config(resolve(flags=fields).config)
    assert (told.max_steps, told.seed, told.gradient_checkpointing, told.activation_gib) == (7, 4, True, 1.5)
    assert (told.reference, told.batch.pack) == ("start", False)
    assert (told.batch.advantage, told.batch.reduction, told.batch.constant_tokens) == ("none", "constant", 9)
    assert (told.batch.mask_truncated, told.batch.num_substeps, told.batch.max_tokens) == (True, 2, 99)
    assert (told.loss.clip_low, told.loss.clip_high) == (0.1, 0.3)
    assert (told.loss.kl_penalty_coef, told.loss.entropy_coef) == (0.01, 0.02)
    assert told.optim.model_dump() == {
        "learning_rate": 1e-3, "lr_schedule": "cosine", "warmup_steps": 5, "max_grad_norm": 0.5, "weight_decay": 0.1,
        "adam_beta1": 0.8, "adam_beta2": 0.9, "adam_eps": 1e-5,
    }  # fmt: skip


def test_the_learner_takes_the_rate_that_the_plan_names():
    for flags in ({}, {"use_lora": False}, {"model_name": "some/model"}):
        config = resolve(flags=flags).config
        assert learner_config(config).optim.learning_rate == config.effective_learning_rate
