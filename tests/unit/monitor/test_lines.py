"""Numbers and lengths of time, for people."""

import pytest

from cuarl.monitor.lines import span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "–"), (float("inf"), "–"), (0.25, "250 ms"), (3.14, "3.14 s"), (42.4, "42 s"), (425, "7 min"),
        (7500, "2 h 5 min"),
        (187200, "2 d 4 h"), (273600, "3 d 4 h"),
    ],
)  # fmt: skip
def test_lengths_of_time_have_two_units_at_most(seconds, said):
    assert span(seconds) == said
