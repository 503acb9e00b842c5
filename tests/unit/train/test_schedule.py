import pytest

from cuarl.train.schedule import OptimConfig, learning_rate


def rates(steps, **fields):
    config = OptimConfig(learning_rate=1.0, **fields)
    return [learning_rate(config, step, steps) for step in range(1, steps + 1)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [1, 1, 1, 1, 1], id="constant"),
        pytest.param({"warmup_steps": 2}, [0.5, 1, 1, 1, 1], id="warm-up"),
        pytest.param({"lr_schedule": "linear"}, [1, 0.8, 0.6, 0.4, 0.2], id="linear"),
        pytest.param({"lr_schedule": "linear", "warmup_steps": 1}, [1, 1, 0.75, 0.5, 0.25], id="warm-up, then linear"),
        pytest.param({"lr_schedule": "cosine"}, [1, 0.9045, 0.6545, 0.3455, 0.0955], id="cosine"),
    ],
)
def test_the_rate_follows_its_schedule_and_is_never_zero_within_the_run(fields, expected):
    assert rates(5, **fields) == pytest.approx(expected, abs=1e-4)


def test_a_warm_up_longer_than_the_run_just_goes_on_rising():
    assert rates(2, warmup_steps=4, lr_schedule="linear") == [0.25, 0.5]
