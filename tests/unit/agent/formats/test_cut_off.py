"""Calls that are cut off, numbers that are not plain digits, and texts that look like special tokens, in every
format."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent import formats
from cuarl.agent.formats import Format, Size
from cuarl.agent.formats.call import outline
from cuarl.types import Click, TypeText, Wait
from tests.unit.agent.formats.test_families import BOTH, every, family

SCREEN = Size(1000, 1000)
MARKS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<end_of_turn>", "</s>", "<|image_pad|>", "<|box_end|>", "<eos>")
read = pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])


# --- special tokens as text -----------------------------------------------------------------------------------------


@every
@read
@pytest.mark.parametrize("mark", MARKS)
def test_the_mark_of_the_end_of_a_turn_can_be_typed(name: str, kind: str, strict: bool, mark: str) -> None:
    """As a format writes it, and as a model may."""
    format = family(name, kind)
    typed = TypeText(text=f"a{mark}b")
    written = format.render(typed, SCREEN)
    assert "<|" not in written
    plain = format.render(TypeText(text="a@b"), SCREEN).replace("@", mark)
    for text in (written, plain):
        assert format.parse(text, SCREEN, strict=strict).action == typed


# --- cut off --------------------------------------------------------------------------------------------------------


def whole(format: Format, text: str = "It is (fine), at 5") -> str:
    return format.render(TypeText(text=text), SCREEN)


@every
@read
def test_a_call_that_is_cut_off_within_a_string_does_nothing(name: str, kind: str, strict: bool) -> None:
    format = family(name, kind)
    text = whole(format)
    start = text.index("It is")
    for end in range(start + 1, start + len("It is (fine), at 5") + 1):
        parsed = format.parse(text[:end], SCREEN, strict=strict)
        assert parsed.action is None and parsed.error is not None, text[:end]


@every
@read
def test_a_call_that_is_cut_off_within_a_number_does_nothing(name: str, kind: str, strict: bool) -> None:
    format = family(name, kind)
    text = format.render(Click(x=345, y=678), SCREEN, resized=SCREEN)
    for number in ("345", "678"):
        for end in range(text.index(number) + 1, text.index(number) + 4):
            assert format.parse(text[:end], SCREEN, resized=SCREEN, strict=strict).action is None, text[:end]


@every
@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=15).filter(
        lambda text: not text.endswith("\n")
    ),
    data=st.data(),
)
def test_however_far_an_answer_got_it_does_what_was_meant_or_nothing(
    name: str, kind: str, text: str, data: st.DataObject
) -> None:
    """No beginning of a call types another text; leniently, only whole values make up for missing brackets."""
    format = family(name, kind)
    meant = format.render(TypeText(text=text), SCREEN)
    end = data.draw(st.integers(0, len(meant)))
    action = format.parse(meant[:end], SCREEN, strict=False).action
    whole = format.parse(meant, SCREEN).action
    # a mark behind the text says that Enter is pressed, in one format
    assert action in (None, whole, TypeText(text=text)), meant[:end]


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ('{"a": "b', True), ('{"a": "b"', False), ('{"a": 1', True), ('{"a": [1]', False), ('{"a": [1, 2', True),
        ("{'a': 'it's", True), ("{'a': 'it's'}", False), ('{"a": "it"s fine"}', False), ('{"a": "it"s fine', True),
        ('{"a": "b\\', True), ('{"a": "b\\"', True), ("{a: b", True), ('{"a":', True), ('{"a": "b",', True),
        ('{"a": [1,', True), ("{a: b}", False), ('{"a": 1}\n```', False),
        ('{"a": 1}} and more', False),
    ],
)  # fmt: skip
def test_where_a_broken_value_ends(text: str, cut: bool) -> None:
    assert outline(text).open_ended is cut


# --- numbers --------------------------------------------------------------------------------------------------------

ODD = ["1_0", "１０", "٣", "+5", "0x10", "1e2", "1E+2", ".5e1", "½", "²"]


def asked(name: str, number: str) -> str:
    """A call in which ``number`` stands for one."""
    format = formats.get(name, "desktop")
    if name.startswith("ui-tars"):
        return f"Action: scroll(start_box='(500,500)', direction='down', amount={number})"
    said = {"openai": Click(x=57, y=5), "gemini": Click(x=57, y=5)}.get(name, Wait(seconds=57))
    return format.render(said, SCREEN).replace("57", number)


@pytest.mark.parametrize("name", formats.NAMES)
@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "text"])
@pytest.mark.parametrize("number", ODD)
def test_a_number_is_plain_digits(name: str, quote: str, number: str) -> None:
    """Everything else is refused, but for JSON's own powers of ten, which are read leniently, with a warning."""
    format = formats.get(name, "desktop")
    text = asked(name, f"{quote}{number}{quote}")
    assert format.parse(text, SCREEN).action is None
    parsed = format.parse(text, SCREEN, strict=False)
    if number in ("1e2", "1E+2") and not quote and not name.startswith("ui-tars"):
        assert any("plain digits" in w for w in parsed.warnings)
    else:
        assert parsed.action is None and parsed.error is not None


@pytest.mark.parametrize("point", ["(１,2)", "(1_0,2)", "(1e1,2)", "(٣,2)"])
@read
def test_so_are_those_of_a_point(point: str, strict: bool) -> None:
    for kind in ("phone", "desktop"):
        format: Any = formats.get("ui-tars-1.0", kind)  # type: ignore[arg-type]
        assert format.parse(f"Action: click(start_box='{point}')", SCREEN, strict=strict).action is None


@pytest.mark.parametrize(("name", "kind"), BOTH)
def test_a_small_time_is_written_in_plain_digits(name: str, kind: str) -> None:
    if not name.startswith(("ui-tars", "openai")):
        written = family(name, kind).render(Wait(seconds=1e-7), SCREEN)
        assert "0.0000001" in written and json.dumps(1e-7) not in written
