from __future__ import annotations

import pytest

from cuarl.suggest import did_you_mean, nearest

KNOWN = ["settings", "navigation", "train_02_enable_wifi", "train_04_home"]


@pytest.mark.parametrize(
    ("name", "near"),
    [("setings", "settings"), ("SETTING", "settings"), ("train_02", "train_02_enable_wifi"),
        ("train_04_hme", "train_04_home"),
     ("xyz", None), ("", None), ("tr", None)],
)  # fmt: skip
def test_the_nearest_name_is_found_if_one_is_near(name: str, near: str | None) -> None:
    assert nearest(name, KNOWN) == near
    assert did_you_mean(name, KNOWN) == (f' (did you mean "{near}"?)' if near else "")
