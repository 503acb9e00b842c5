import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.store import codec

TEXT = st.text(st.characters(codec=None) | st.sampled_from("\x00\ud800\udfff\ue0ff0f"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


@given(TEXT)
def test_text_comes_back_and_is_storable_on_postgresql(text):
    stored = codec.encode_text(text)
    assert codec.decode_text(stored) == text
    assert "\x00" not in stored
    stored.encode("utf-8")


def test_text_is_kept_as_it_is_when_no_database_minds_it():
    assert codec.encode_text("Öffne “Wi-Fi” 🙂") == "Öffne “Wi-Fi” 🙂"


@given(VALUES)
def test_json_comes_back_and_has_no_value_that_jsonb_changes(value):
    stored = codec.encode_json(value)
    text = json.dumps(stored, allow_nan=False)
    assert "\\u0000" not in text
    back = codec.decode_json(json.loads(text))
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize("value", [{1: 2}, {"a": object()}, [b"x"]], ids=["key", "object", "bytes"])
def test_json_refuses_what_it_would_change(value):
    with pytest.raises(TypeError, match="JSON has"):
        codec.encode_json(value)


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_ids_come_back(ids):
    assert codec.unpack_ids(codec.pack_ids(ids)) == tuple(ids)


def test_ids_of_image_placeholders_take_next_to_no_room():
    assert len(codec.pack_ids([151655] * 10_000)) < 300


def test_ids_beyond_32_bits_are_refused():
    with pytest.raises(OverflowError):
        codec.pack_ids([2**31])


@given(st.lists(st.floats()))
def test_floats_come_back_bit_for_bit(values):
    back = codec.unpack_floats(codec.pack_floats(values))
    assert [v.hex() for v in back] == [v.hex() for v in values]


def test_lines_are_strict_json_in_ascii():
    value = {"ä": [math.inf, -math.inf, 1.5, "\ud800\0"], "\ue0ff": "\ue0fffnan"}
    line = codec.dump_line(value)
    assert line.isascii() and codec.load_line(line) == value
    json.loads(line, parse_constant=pytest.fail)
    assert math.isnan(codec.load_line(codec.dump_line({"x": math.nan}))["x"])
    assert codec.dump_line({"x": [1.0, "y"]}) == '{"x":[1.0,"y"]}'


def _joined(text):
    """Two halves of a pair that follow each other are one character, which JSON can't tell from them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


LINE_TEXT = TEXT.map(_joined)
LEAVES = LINE_TEXT | st.floats(allow_nan=False) | st.integers()


@given(st.dictionaries(LINE_TEXT, st.recursive(LEAVES, st.lists, max_leaves=5)))
def test_lines_come_back(value):
    line = codec.dump_line(value)
    assert codec.load_line(line) == value
    json.loads(line, parse_constant=pytest.fail)


@pytest.mark.parametrize("line", ['{"x": NaN}', '{"x": -Infinity}', '{"x": 1e999}', "[" * 100_000, "{"])
def test_lines_of_others_must_be_strict_too(line):
    with pytest.raises(ValueError, match=r"NaN|Infinity|1e999|nested|line 1"):
        codec.load_line(line)
