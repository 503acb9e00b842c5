import json
from collections import Counter

import anyio
import pytest

from cuarl.config.load import resolve
from cuarl.env.sim.make import make_sim
from cuarl.errors import ConfigError
from cuarl.tasks.source import load
from cuarl.workflow.environments import Backend
from cuarl.workflow.from_config import Measuring, Practice, learner_config, model_spec, stretch
from cuarl.workflow.players import scripted


def test_every_task_comes_once_an_epoch_in_an_order_of_its_own():
    tasks = list(range(10))
    drawn = [t for step in range(1, 11) for t in stretch(tasks, 0, step, 3)]
    epochs = [tuple(drawn[i : i + 10]) for i in (0, 10, 20)]
    assert all(sorted(epoch) == tasks for epoch in epochs)
    assert len(set(epochs)) == 3


def test_a_step_draws_the_same_whatever_was_drawn_before():
    assert list(stretch("abcde", 1, 4, 3)) == list(stretch("abcde", 1, 4, 3))
    assert Counter(stretch("ab", 0, 1, 5)) in ({"a": 3, "b": 2}, {"a": 2, "b": 3})
    assert list(stretch("abcdefgh", 1, 1, 8)) != list(stretch("abcdefgh", 2, 1, 8))


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


def test_c38_only_the_main_process_evaluates():
    others = Measuring(None, scripted("oracle"), None, None, None, json=True)
    assert anyio.run(others, 3) is None and others.last is None


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


@pytest.mark.anyio
async def test_no_collector_runs_more_episodes_at_once_than_the_environments_bear():
    """The one that collects for a service that trains elsewhere, too, which has no learner here."""
    running, most = 0, 0

    async def make(spec):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await anyio.sleep(0)
        env = make_sim(spec.task.env, "small", clutter=0.0)
        close = env.close

        async def closed():
            nonlocal running
            running -= 1
            await close()

        env.close = closed
        return env

    config = resolve(flags={"trainer": "tinker", "group_size": 4, "groups_per_batch": 2, "max_turns": 2}).config
    tasks = load(["settings"]).tasks[:2]
    practice = Practice(
        config, tasks, scripted("nothing"), "r", None, None, json=True, backend=Backend(make, at_most=3)
    )  # fmt: skip
    batch = await practice(1, 0)
    assert (len(batch.groups), most, running) == (2, 3, 0)
