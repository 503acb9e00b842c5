"""The table of algorithms, and the errors that are made from it."""

import re

import pytest

from cuarl.config.algorithms import ALGORITHMS, OPTIONS
from cuarl.config.keys import keys, value_of
from cuarl.config.learning import Learning, complete, inner, record_of
from cuarl.config.load import resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError

OTHER = {
    "reward": "shaped", "advantage_normalization": "none", "credit": "screen", "gigpo_anchor": "text",
    "loss_reduction": "turn", "kl_in": "reward", "kl_reference": "start", "kl_estimator": "k2", "curriculum": "pools",
    "critic_level": "token",
    "critic_trunk": "shared", "rejection_rule": "best-of-group", "sft_runs": ("r",), "decoupled": True,
    "sft_weights": ("plan=2",),
    "sampler_device": "cpu", "compute_post_kl": True, "mask_truncated": True, "shortest_path_coef": 0.5,
    "discount": 0.9, "validation_split": 0.5, "clip_low": 0.11, "gae_lambda": 0.11, "credit_lambda": 0.11,
}  # fmt: skip
"""A value that is no algorithm's default; numbers not listed are 7."""


def other(name):
    return OTHER.get(name, 7)


def made(algorithm, **fields):
    needed = {"sft_runs": ("r",)} if algorithm == "sft" else {}
    return resolve(flags={"algorithm": algorithm, **needed, **fields}).config


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_without_effect_is_refused_by_name(algorithm, name):
    option = OPTIONS[name]
    if algorithm in option.algorithms:
        return
    if other(name) == ALGORITHMS[algorithm].defaults.get(name, keys()[name].field.default):
        return
    path = re.escape(keys()[name].path)
    with pytest.raises(ConfigError, match=f"{path} has no effect with algorithm {re.escape(algorithm)}"):
        made(algorithm, **{name: other(name)})


@pytest.mark.parametrize("name", [n for n, o in OPTIONS.items() if o.needs])
def test_an_option_that_needs_another_is_refused_without_it_and_taken_with_it(name):
    option = OPTIONS[name]
    algorithm = next(a for a in ALGORITHMS if a in option.algorithms)
    off = {"credit": "screen" if "episode" in option.values else "episode"}.get(option.needs)
    fields = {name: other(name), **({option.needs: off} if off else {})}
    path, needs = (re.escape(keys()[one].path) for one in (name, option.needs))
    with pytest.raises(ConfigError, match=f"{path} has no effect with {needs}"):
        made(algorithm, **fields)
    also = {"credit": "episode"} if option.needs == "replay_per_task" else {}
    on = option.values[0] if option.values else {"validation_split": 0.5}.get(option.needs, 1)
    made(algorithm, **also, **{name: other(name), option.needs: on})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_holds_with_its_own_defaults_and_says_where_they_are_from(algorithm):
    flags = {"algorithm": algorithm, **({"sft_runs": ["r"]} if algorithm == "sft" else {})}
    resolved = resolve(flags=flags)
    for name, value in ALGORITHMS[algorithm].defaults.items():
        assert getattr(resolved.config.learning, name) == value
        path = f"algorithm.{inner(algorithm, name)}"
        if path in resolved.sources:
            assert value_of(resolved.config, path) == value and resolved.sources[path] == f"algorithm {algorithm}"
    assert ExperimentConfig.model_validate(resolved.config.model_dump()) == resolved.config


def test_what_is_given_wins_over_the_algorithms_default():
    assert made("dapo", clip_high=0.2).algorithm.clip_high == 0.2


def test_every_field_of_the_panel_is_in_the_table_or_always_has_an_effect():
    assert set(Learning.model_fields) < set(OPTIONS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_record_has_the_options_that_have_an_effect_and_no_other(algorithm):
    record = record_of(algorithm)
    assert {record.flags[name] for name in record.model_fields if name != "type"} == {
        name for name, option in OPTIONS.items() if algorithm in option.algorithms and name in Learning.model_fields
    }
    told = complete(record())
    assert {name: getattr(told, name) for name in ALGORITHMS[algorithm].defaults} == ALGORITHMS[algorithm].defaults


def test_what_two_algorithms_share_is_kept_when_another_is_taken(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("algorithm: {type: grpo, clip_high: 0.3, dynamic_sampling_rounds: 2}\n")
    assert resolve(files=[path], flags={"algorithm": "gspo"}).config.algorithm.clip_high == 0.3
    with pytest.raises(ConfigError, match=r"algorithm\.dynamic_sampling_rounds has no effect with algorithm ppo"):
        resolve(files=[path], flags={"algorithm": "ppo"})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kl_penalty_coef": 0.1, "kl_estimator": "k1"}, "mean zero"),
        ({"overlong_buffer": 500}, "exceeds max_tokens"),
        ({"algorithm": "ppo", "critic_warmup_steps": 64}, "no step to train the policy"),
        ({"algorithm": "gspo", "group_size": 1}, "group_size must be at least 2"),
        ({"algorithm": "rejection", "rejection_rule": "best-of-group", "group_size": 1}, "at least 2"),
    ],
)
def test_what_contradicts_itself_is_refused(fields, says):
    with pytest.raises(ConfigError, match=says):
        resolve(flags=fields)
