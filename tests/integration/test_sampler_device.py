"""A second copy of the model samples: every token and every weight is what one shared model gives."""

import pytest

from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import (  # noqa: F401
    checkpoint,
    options,
    place,
)

pytestmark = pytest.mark.integration


def sampled(place, name):  # noqa: F811
    """Tokens, log-probabilities and policy versions of everything that was trained on, by group, attempt and turn."""
    with place.store() as store:
        (run,) = [r for r in store.runs() if r.name == name]
        return {
            (t.group_id.removeprefix(run.id), t.attempt, turn.index): (
                turn.sampled.prompt_ids,
                turn.sampled.token_ids,
                turn.sampled.logprobs,
                turn.sampled.policy_version,
            )
            for t in store.trajectories(run=run.id)
            for turn in t.turns
            if t.purpose == "train"
        }


@pytest.mark.parametrize("mode", [[], ["--max-steps-off-policy", "1"]], ids=["in turn", "beside"])
def test_a_second_copy_samples_what_a_shared_model_samples(place, options, mode):  # noqa: F811
    trained = [
        *options,
        *mode,
        "--max-steps",
        "3",
        "--save-every",
        "0",
        "--eval-every",
        "0",
        "--skip-baseline",
        "--eval-episodes",
        "2",
    ]
    assert place.cuarl(*trained, "--name", "shared").code == 0
    result = place.cuarl(*trained, "--name", "apart", "--sampler-device", "cpu")
    assert result.code == 0, result.err
    shared, apart = sampled(place, "shared"), sampled(place, "apart")
    assert {version for *_, version in shared.values()} >= {0, 1, 2} - ({2} if mode else set())
    assert shared == apart
    runs = place.folder / "runs"
    assert (
        checkpoint(runs / "apart", 3)["adapter_model.safetensors"]
        == (checkpoint(runs / "shared", 3)["adapter_model.safetensors"])
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--processes", "2"], "--sampler-device works in one process"),
        (["--model-base-url", "http://localhost:1/v1"], "policy.sampler_device has no effect with policy openai"),
        (["--algorithm", "sft", "--sft-runs", "x"], "sampler_device has no effect with algorithm sft"),
        (["--trainer", "tinker"], "sampler_device has no effect with trainer tinker"),
    ],
)
def test_what_it_does_not_go_with_is_refused_by_name(place, options, words, message):  # noqa: F811
    result = place.cuarl(*options, "--sampler-device", "cpu", *words)
    assert (result.code, message in result.err) == (2, True), result.err
    assert not (place.folder / "runs").exists()


def test_a_device_that_is_not_there_is_refused_before_anything_starts(place, options):  # noqa: F811
    result = place.cuarl(*options, "--sampler-device", "cuda:99")
    assert (result.code, "this machine has no device cuda:99" in result.err) == (2, True), result.err
