from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.tasks.json_format import JsonDocument, json_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_the_value_is_that_of_the_standard_library_whatever_the_layout(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    document = JsonDocument(text)
    assert document.problems == []
    assert document.value == json.loads(text)


def test_every_part_has_the_line_on_which_it_begins() -> None:
    document = JsonDocument('[\n  {"id": "a",\n   "tags": ["x",\n      "y"]},\n  "goal"\n]\n')
    assert document.lines == {
        (): 1, (0,): 2, (0, "id"): 2, (0, "tags"): 3, (0, "tags", 0): 3, (0, "tags", 1): 4, (1,): 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"a": 1,\n"b": }', 2, "expecting value"),
        ('{"a": 1}\n{"a": 2}', 2, ".jsonl"),
        ('[\n1,\nNaN]', 3, "NaN"),
        ('{"a": 1,\n"a": 2}', 2, '"a" is given twice, first on line 1'),
        ('[{"p": {"x": 1,\n"x": 2}}]', 2, '"x" is given twice, first on line 1'),
        ("[" * 100_000, 1, "too deeply"),
        ('{"a": "\n"}', 1, "control character"),
    ],
)  # fmt: skip
def test_what_is_not_json_is_a_problem_with_its_line(text: str, line: int, words: str) -> None:
    (problem,) = JsonDocument(text).problems
    assert problem.line == line
    assert words in problem.text


def test_json_lines_end_at_newlines_only_and_skip_blank_lines() -> None:
    documents = list(json_lines('{"a": "one\u2028two\x0c"}\n\n# note\n{"b": 1}\n'.replace("\x0c", "\\f")))
    assert [d.value for d in documents] == [{"a": "one\u2028two\x0c"}, {"b": 1}]
    assert [d.lines[()] for d in documents] == [1, 4]
