"""JSON as its standard has it, read and written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl import strict_json
from cuarl.strict_json import NotJson

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inside),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_json_is_read_as_python_reads_it(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False).encode()):
        assert strict_json.loads(text) == value
    assert json.loads(strict_json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NaN", "NaN is no number"), ('{"a": [Infinity]}', "Infinity is no number"),
        ("[-Infinity]", "-Infinity is no number"),
        ("1e999", "1e999 is out of range"), ("-1e999", "-1e999 is out of range"),
        ("1" * 5000, r"11111111111111111111… \(5000 char"),
        ("18446744073709551616", "does not fit into 64 bits"), ("-9223372036854775809", "does not fit into 64 bits"),
        ("1" * 4000 + ".0", "is out of range"), ("[" * 101 + "]" * 101, "deeper than 100"),
        ("[" * 200_000, "deeper than 100"),
        ('{"a":' * 200_000, "deeper than 100"), (r'["\ud800 x"]', r"\\ud800 is half"),
        (r'{"\udfff": 1}', r"\\udfff is half"),
        (b'"\xff"', "byte 1 is not UTF-8"), ("[1,]", "line 1, column"), ("", "line 1, column 1"),
        ("[\0]", "line 1, column 2"),
        ("\ufeff1", "."), ('"\ud800"', "byte 1 is not UTF-8"), (json.dumps("x").encode("utf-16"), "not UTF-8"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_by_name(text, says):
    with pytest.raises(NotJson, match=says):
        strict_json.loads(text)


def test_what_is_just_within_the_bounds_is_read():
    assert strict_json.loads("[" * 100 + "]" * 100)
    assert strict_json.loads("[18446744073709551615, -9223372036854775808, 1e308]") == [
        (1 << 64) - 1,
        -(1 << 63),
        1e308,
    ]
    assert strict_json.loads(r'"\ud83d\ude00 \\ud800"') == "😀 \\ud800"
    brackets = "[" * 5000
    assert strict_json.loads(json.dumps([brackets] * 3)) == [brackets] * 3


def test_more_values_than_memory_should_hold_are_refused_before_they_are_made():
    with pytest.raises(NotJson, match="more than 2,000,000 values"):
        strict_json.loads("[" + "[]," * 1_000_001 + "1]")


def test_numbers_that_are_not_finite_become_null_and_are_found():
    value = {"a": [1.0, float("nan")], "b": (float("inf"), "NaN"), "c": {"d": -float("inf")}}
    assert json.loads(strict_json.dumps(value)) == {"a": [1.0, None], "b": [None, "NaN"], "c": {"d": None}}
    assert strict_json.not_finite({"a": [1.0, "x"]}) is None and strict_json.not_finite(float("nan")) == ()
    assert strict_json.not_finite({"info": {"t": [0.0, float("inf")]}}) == ("info", "t", 1)
    exact = '{"a": [1.0, "NaN"], "b": ["Infinity", "NaN"], "c": {"d": "-Infinity"}}'
    assert strict_json.dumps_exact(value) == exact


def test_replies_may_hold_any_text_and_any_integer_but_no_number_that_is_none():
    assert strict_json.reply(b'["\\ud83d", 99999999999999999999999]') == ["\ud83d", 99999999999999999999999]
    for text in ("NaN", "[1e999]", "[" * 100_000, b"\xff", "{"):
        with pytest.raises(NotJson):
            strict_json.reply(text)
