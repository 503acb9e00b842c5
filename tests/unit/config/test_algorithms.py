"""The table of algorithms, and the errors that are made from it."""

import pytest
from pydantic import ValidationError

from cuarl.config.algorithms import ALGORITHMS, OPTIONS
from cuarl.config.load import resolve
from cuarl.config.schema import AlgorithmFields, ExperimentConfig

OTHER = {
    "reward": "shaped", "advantage_normalization": "none", "credit": "screen", "gigpo_anchor": "text",
    "loss_reduction": "turn", "kl_in": "reward", "kl_reference": "start", "kl_estimator": "k2", "curriculum": "pools", "critic_level": "token",
    "critic_trunk": "shared", "rejection_rule": "best-of-group", "sft_runs": ("r",), "decoupled": True,
    "sampler_device": "cpu", "compute_post_kl": True, "mask_truncated": True, "shortest_path_coef": 0.5, "discount": 0.9, "clip_low": 0.11, "gae_lambda": 0.11, "credit_lambda": 0.11,
}  # fmt: skip
"""A value that is no algorithm's default; numbers not listed are 7."""


def other(name):
    return OTHER.get(name, 7)


def made(algorithm, **fields):
    needed = {"sft_runs": ("r",)} if algorithm == "sft" else {}
    return ExperimentConfig.model_validate({"algorithm": algorithm, **needed, **fields})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_without_effect_is_refused_by_name(algorithm, name):
    option = OPTIONS[name]
    if algorithm in option.algorithms:
        return
    if other(name) == ALGORITHMS[algorithm].defaults.get(name, ExperimentConfig.model_fields[name].default):
        return
    with pytest.raises(ValidationError, match=f"{name} has no effect with algorithm {algorithm}"):
        made(algorithm, **{name: other(name)})


@pytest.mark.parametrize("name", [n for n, o in OPTIONS.items() if o.needs])
def test_an_option_that_needs_another_is_refused_without_it_and_taken_with_it(name):
    option = OPTIONS[name]
    algorithm = next(a for a in ALGORITHMS if a in option.algorithms)
    off = {"credit": "screen" if "episode" in option.values else "episode"}.get(option.needs)
    fields = {name: other(name), **({option.needs: off} if off else {})}
    with pytest.raises(ValidationError, match=f"{name} has no effect with {option.needs}"):
        made(algorithm, **fields)
    also = {"credit": "episode"} if option.needs == "replay_per_task" else {}
    made(algorithm, **also, **{name: other(name), option.needs: option.values[0] if option.values else 1})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_holds_with_its_own_defaults_and_says_where_they_are_from(algorithm):
    flags = {"algorithm": algorithm, **({"sft_runs": ["r"]} if algorithm == "sft" else {})}
    resolved = resolve(flags=flags)
    for name, value in ALGORITHMS[algorithm].defaults.items():
        assert getattr(resolved.config, name) == value
        assert resolved.sources[name] == f"algorithm {algorithm}"
    assert ExperimentConfig.model_validate(resolved.config.model_dump()) == resolved.config


def test_what_is_given_wins_over_the_algorithms_default():
    assert made("dapo", clip_high=0.2).clip_high == 0.2


def test_every_field_of_the_panel_is_in_the_table_or_always_has_an_effect():
    assert set(AlgorithmFields.model_fields) - set(OPTIONS) == {"algorithm"}


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
    with pytest.raises(ValidationError, match=says):
        ExperimentConfig.model_validate(fields)
