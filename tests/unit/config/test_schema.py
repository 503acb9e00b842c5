import ast
import inspect
import itertools

import pytest
from pydantic import ValidationError

from cuarl.config import schema
from cuarl.config.kinds import kind_of
from cuarl.config.load import presets, resolve
from cuarl.config.schema import PANELS, ExperimentConfig


def test_panels_hold_every_field_once():
    names = [name for panel in PANELS for name in panel.model_fields]
    assert sorted(names) == sorted(ExperimentConfig.model_fields)
    assert list(ExperimentConfig.model_fields) == names


@pytest.mark.parametrize("name", ExperimentConfig.model_fields)
def test_every_field_has_a_sentence_and_a_command_line_form(name):
    field = ExperimentConfig.model_fields[name]
    description = ExperimentConfig.descriptions()[name]
    assert description.endswith(".")
    assert "[" not in description, "rich would take it for markup"
    kind_of(field)


def test_every_field_is_frozen():
    config = ExperimentConfig()
    with pytest.raises(ValidationError):
        config.seed = 1


@pytest.mark.parametrize(
    ("fields", "rate"),
    [({}, 7e-4), ({"model_name": "some/model"}, 2e-4), ({"use_lora": False}, 1e-5), ({"learning_rate": 3e-3}, 3e-3)],
)
def test_learning_rate_follows_the_rule_when_unset(fields, rate):
    assert ExperimentConfig(**fields).effective_learning_rate == rate


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("settings", ("settings",)),
        (["a", "b,c"], ("a", "b,c")),
        ({"source_type": "ids", "limit": 2}, ('{"limit": 2, "source_type": "ids"}',)),
        ('{"source_type":"ids",\n "limit":2}', ('{"limit": 2, "source_type": "ids"}',)),
        ('[{"limit": 1}, "app"]', ('{"limit": 1}', "app")),
        ([{"limit": 1}], ('{"limit": 1}',)),
    ],
)
def test_tasks_take_one_selector_many_or_source_objects(given, kept):
    assert ExperimentConfig(tasks=given).tasks == kept


def test_tasks_refuse_broken_json():
    with pytest.raises(ValidationError, match="broken JSON"):
        ExperimentConfig(tasks='{"limit": ')


def test_words_are_split_at_commas():
    assert ExperimentConfig(category=["settings, app", "input"]).category == ("settings", "app", "input")


@pytest.mark.parametrize(
    "fields",
    [
        {"group_size": True},
        {"model_name": True},
        {"learning_rate": float("inf")},
        {"kl_penalty_coef": float("nan")},
        {"learning_rate": 0},
        {"env": {"clutter": 1.5}},
        {"device": "gpu"},
        {"model_name": 12},
    ],
    ids=str,
)
def test_values_of_the_wrong_kind_are_refused(fields):
    with pytest.raises(ValidationError):
        ExperimentConfig(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_steps_off_policy": 1, "algorithm": {"dynamic_sampling_rounds": 2}}, "set one to 0"),
        ({"max_steps_off_policy": 1, "env": "adb"}, "without devices"),
        ({"max_steps_off_policy": 1, "algorithm": {"type": "sft", "runs": "a"}}, "no effect with algorithm sft"),
        (
            {
                "max_steps_off_policy": 1,
                "policy": {"type": "openai", "base_url": "http://localhost:1/v1", "rescore": True},
            },
            "policy.rescore computes with the policy that is trained",
        ),
        (
            {"max_steps_off_policy": 1, "policy": {"type": "vllm", "sleep": True}},
            "policy.sleep ends sampling while something is trained",
        ),
        ({"kl_penalty_coef": 0.1, "trainer": "tinker"}, "algorithm.kl_in reward, or no kl_penalty_coef"),
        ({"lora_target_option": "custom"}, "need each other"),
        ({"lora_target_modules": "q_proj"}, "need each other"),
        ({"use_lora": False, "kl_penalty_coef": 0.1}, "reference"),
        ({"quantization": "nf4", "use_lora": False}, "only an adapter can be trained"),
        ({"quantization": "nf4", "policy": {"type": "openai", "base_url": "http://h/v1"}}, "a base of its own"),
        ({"quantization": "nf4", "policy": {"type": "vllm", "python": "p"}}, "a base of its own"),
        ({"quantization": "nf4", "trainer": {"type": "tinker"}}, "quantization has no effect with trainer tinker"),
        ({"use_lora": False, "lora_rank": 8}, "lora_rank has no effect"),
        ({"algorithm": "sft"}, "needs algorithm.runs"),
        ({"algorithm": {"type": "sft", "runs": "a", "clip_high": 0.3}}, "clip_high is unknown"),
        ({"algorithm": {"loss_constant_tokens": 5}}, "no effect with algorithm.loss_reduction token"),
        ({"policy": "openai"}, "needs policy.base_url"),
        ({"group_size": 1}, "at least 2"),
        ({"max_turn_time_seconds": 2000}, "exceeds"),
        ({"env": {"type": "gbox", "coordinate_mode": "gbox"}, "renderer_name": "json"}, "words of its own"),
        ({"env": {"type": "gbox", "expires_in": "1800s"}}, "env.expires_in must exceed"),
    ],
    ids=str,
)
def test_combinations_that_cannot_be_honoured_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        ExperimentConfig(**fields)


def test_digest_differs_exactly_when_a_field_does():
    configs = [ExperimentConfig(), ExperimentConfig(seed=1), ExperimentConfig(learning_rate=2e-4)]
    assert ExperimentConfig(seed=0).digest == configs[0].digest
    assert all(a.digest != b.digest for a, b in itertools.combinations(configs, 2))


def test_schedules_over_all_steps_fix_the_number_of_steps():
    assert "max_steps" in ExperimentConfig().resumable_fields
    assert "max_steps" not in ExperimentConfig(lr_schedule="cosine").resumable_fields
    assert ExperimentConfig().resumable_fields <= set(ExperimentConfig.model_fields)


def test_the_tiny_preset_is_the_defaults():
    assert resolve(preset="tiny").config.digest == ExperimentConfig().digest


@pytest.mark.parametrize("name", presets())
def test_every_preset_resolves_and_says_what_it_is_for(name):
    assert presets()[name]
    assert resolve(preset=name).preset == name


def test_defaults_are_given_in_the_schema_alone():
    tree = ast.parse(inspect.getsource(schema))
    fields = {node.target.id for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and node.value is not None}
    assert set(ExperimentConfig.model_fields) <= fields
