import pytest

from cuarl.monitor.metric_names import METRICS, documented


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("reward/mean", "reward/mean"),
        ("reward/finished/mean", "reward/<part>/mean"),
        ("action/long_press_share", "action/<kind>_share"),
        ("eval/settings/pass@8", "eval/<suite>/pass@<k>"),
        ("eval/settings/pass^8", "eval/<suite>/pass^<k>"),
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


def test_each_rate_of_an_evaluation_comes_with_its_interval_and_n():
    assert {f"eval/<suite>/{name}" for name in ("success_rate", "ci_low", "ci_high", "n")} <= set(METRICS)
