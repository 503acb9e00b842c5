from __future__ import annotations

import pytest

from cuarl.tasks.yaml_format import YamlDocument, scalar


@pytest.mark.parametrize(
    "text",
    ["010", "on", "off", "no", "yes", "y", "Yes", "NO", "12:30", "1.10", "2026-01-05", "2026-01-05T10:00:00Z", "1e-5",
        "1_000",
     "0x1F", "0o17", "+5", "-0", "00", "0.50", ".5", "5.", ".inf", ".nan", "True", "FALSE", "Null", "1" * 40, "٣"],
)  # fmt: skip
def test_c51_a_plain_scalar_stays_text_when_its_value_would_lose_characters(text: str) -> None:
    document = YamlDocument(f"field: {text}\n")
    assert document.problems == []
    assert document.value == {"field": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("255", 255), ("-7", -7), ("1.5", 1.5), ("-0.25", -0.25), ("1.0", 1.0), ("true", True), ("false", False),
     ("null", None), ("~", None), ("", None)],
)  # fmt: skip
def test_a_plain_scalar_is_a_value_when_nothing_is_lost(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


def test_a_quoted_or_block_scalar_is_always_text() -> None:
    document = YamlDocument("a: \"1\"\nb: 'true'\nc: |\n  12\nd: >-\n  null\n")
    assert document.value == {"a": "1", "b": "true", "c": "12\n", "d": "null"}


def test_keys_are_text_and_every_part_has_its_line() -> None:
    document = YamlDocument("# note\n\ntasks:\n- id: a\n  preset:\n    on: true\n- id: b\n  tags: [x,\n    y]\n")
    assert document.value == {"tasks": [{"id": "a", "preset": {"on": True}}, {"id": "b", "tags": ["x", "y"]}]}
    assert document.lines["tasks", 0, "preset", "on"] == 6
    assert document.lines["tasks", 1] == 7
    assert document.lines["tasks", 1, "tags", 1] == 9


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: [1,\n", 3, "not YAML"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, '"a" is given twice, first on line 1'),
        ("a:\n  x: 1\n  x: 2\n", 3, '"x" is given twice, first on line 2'),
        ("a: &one 1\nb: *one\n", 1, "anchors"),
        ("a: 1\nb: *one\n", 2, "anchors"),
        ("a: !!python/object/apply:os.getcwd []\n", 1, "tag"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("? [1, 2]\n: 3\n", 1, "key"),
        ("[" * 80 + "]" * 80, 1, "levels deep"),
    ],
)
def test_what_is_not_read_is_a_problem_with_its_line(text: str, line: int, words: str) -> None:
    (problem,) = YamlDocument(text).problems
    assert problem.line == line
    assert words in problem.text


def test_a_control_character_is_a_problem_not_a_crash() -> None:
    (problem,) = YamlDocument("a: \x07\n").problems
    assert "control characters" in problem.text
