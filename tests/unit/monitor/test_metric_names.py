import pytest

from cuarl.evaluate.suite import Evaluation
from cuarl.evaluate.summary import Summary
from cuarl.monitor.metric_names import EVAL_METRICS, METRICS, documented


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("reward/mean", "reward/mean"),
        ("reward/finished/mean", "reward/<part>/mean"),
        ("action/long_press_share", "action/<kind>_share"),
        ("eval/settings_eval/ci_low", "eval/<suite>/ci_low"),
        ("eval/a/b/n", None),
        ("reward/median", None),
        ("stop/<reason>", "stop/<reason>"),
    ],
)
def test_an_emitted_name_is_an_instance_of_a_listed_one(name, listed):
    assert documented(name) == listed


def test_names_are_grouped_lower_case_paths_with_a_meaning():
    for name, meaning in METRICS.items():
        assert "/" in name and name == name.lower() and " " not in name
        assert meaning and not meaning.endswith(".")


def test_an_evaluation_emits_the_documented_names_and_no_others():
    rates = {"success_rate": 0.5, "ci_low": 0.1, "ci_high": 0.9, "false_completion_rate": 0.0, "side_effect_rate": 0.0}
    overall = Summary(n=2, tasks=1, failed=1, steps_mean=3.0, pass_at={1: 0.5}, pass_hat={1: 0.5}, **rates)
    emitted = Evaluation(label="settings", overall=overall).metrics()
    assert sorted(map(documented, emitted)) == sorted(EVAL_METRICS)


def test_each_rate_of_an_evaluation_comes_with_its_interval_and_n():
    assert {f"eval/<suite>/{name}" for name in ("success_rate", "ci_low", "ci_high", "n")} <= set(METRICS)
