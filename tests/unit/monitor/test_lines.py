"""Steps, evaluations, numbers and lengths of time, for people."""

import pytest

from cuarl.monitor.lines import evaluation_lines, span, sparkline, step_line

STEP = {
    "episode/success_rate": 0.72,
    "reward/mean": 0.333,
    "group/frac_mixed": 0.667,
    "time/step_s": 3.14,
    "policy/loss": 0.1,
}


def evaluated(label, rate=0.72):
    return {
        f"eval/{label}/{k}": v for k, v in {"success_rate": rate, "ci_low": 0.654, "ci_high": 0.778, "n": 200.0}.items()
    }


def test_a_step_is_a_line_of_what_matters():
    line = step_line(12, STEP, total=32, left_s=840)
    assert line == "step 12/32  success 72 %  reward 0.33  signal 67 %  3.1 s  14 min left"
    assert step_line(12, STEP) == "step 12  success 72 %  reward 0.33  signal 67 %  3.1 s"


def test_what_is_as_it_should_be_is_not_said():
    fine = {**STEP, "episode/failed_rate": 0.0, "failure/env": 0.0}
    assert step_line(1, fine) == step_line(1, STEP)
    failing = {**STEP, "episode/failed_rate": 0.125, "failure/env": 0.0625, "failure/sampler": 0.0625}
    assert "  failed 12 % (env, sampler)  3.1 s" in step_line(1, failing)
    assert "  lag 1.0  " in step_line(1, {**STEP, "async/staleness_mean": 1.0})


def test_a_long_run_fits_80_characters_with_its_trend():
    values = {**STEP, "episode/success_rate": 1.0, "group/frac_mixed": 1.0, "time/step_s": 42.0}
    assert len(step_line(128, values, total=999, left_s=7500, trend="▁▂▃▄▅▆▇█")) <= 88
    assert len(step_line(128, values, total=999, left_s=7500)) <= 80


def test_imitation_says_how_likely_the_answers_are():
    assert step_line(2, {"sft/nll": 0.76591, "time/step_s": 0.5}, total=3) == "step 2/3  nll 0.766  500 ms"


def test_an_evaluation_is_no_step_and_has_a_line_of_its_own():
    assert step_line(0, evaluated("settings_eval")) == ""
    assert evaluation_lines(16, {**STEP, **evaluated("settings_eval"), **evaluated("validation", 0.5)}) == [
        "evaluation at step 16: success 72.0 % (65.4–77.8 %, 200 episodes of settings_eval)",
        "validation at step 16: success 50.0 % (65.4–77.8 %, 200 episodes)",
    ]
    assert evaluation_lines(1, STEP) == []


def test_a_suite_can_not_steer_the_terminal():
    assert "\x1b" not in "".join(evaluation_lines(1, evaluated("a\x1b[2J")))


def test_a_sparkline_goes_from_the_bottom_to_the_top():
    assert sparkline([0.0, 0.5, 1.0, 7.0, -1.0]) == "▁▅██▁"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"), (float("inf"), "–"), (0.25, "250 ms"), (3.14, "3.1 s"), (9.99, "10 s"), (0, "0 s"), (42.4, "42 s"),
        (425, "7 min"), (7500, "2 h 5 min"), (187200, "2 d 4 h"), (273600, "3 d 4 h"),
    ],
)  # fmt: skip
def test_lengths_of_time_have_two_units_at_most(seconds, said):
    assert span(seconds) == said
