"""What a model thinks, or shows as an example, is not done: in every format, strictly and leniently read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent import formats
from cuarl.agent.formats import Format, Size
from cuarl.agent.formats.described.format import Described
from cuarl.agent.formats.thinking import said
from cuarl.types import Click, TypeText, Wait

NAMES = (*formats.NAMES, "described")
SCREEN = Size(1000, 1000)
every = pytest.mark.parametrize("name", NAMES)
read = pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
OPEN, CLOSE = "<think>", "</think>"


def format_(name: str, kind: Any = "desktop") -> Format:
    return Described(kind) if name == "described" else formats.get(name, kind)


def call(format: Format, seconds: int) -> str:
    """A call that all formats have, told from others by its time or its text."""
    action = TypeText(text=f"said {seconds}")
    return format.render(action, SCREEN)


def done(format: Format, text: str, strict: bool) -> Any:
    return format.parse(text, SCREEN, strict=strict).action


@every
@read
@pytest.mark.parametrize(
    "thought",
    [
        "{open}\n{other}\n{close}\n",
        "{open}{other}{close}",
        "Let me see: {other}\n{close}\n\n",
        "{open}{other}{open}{close}",
        "{open}```\n{other}\n```{close}",
        "{open}{other}{close}\n{open}{other}{close}",
        "{open}<thinking>{other}</thinking>{close}",
        "{open}</thinking>{other}{close}",
        "{other} {open}{other}{close}",
    ],
)
def test_a_call_in_closed_thinking_is_not_done(name: str, strict: bool, thought: str) -> None:
    format = format_(name)
    thought = thought.format(open=OPEN, close=CLOSE, other=call(format, 1))
    assert done(format, thought, strict) is None
    assert done(format, thought + call(format, 2), strict) == TypeText(text="said 2")


@every
@read
@pytest.mark.parametrize("tags", [("<thinking>", "</thinking>"), ("◁think▷", "◁/think▷"), ("[THINK]", "[/THINK]")])
def test_other_families_tags_of_thinking_are_known(name: str, strict: bool, tags: tuple[str, str]) -> None:
    format = format_(name)
    inside = tags[0] + call(format, 1)
    assert done(format, inside, strict) is None
    assert done(format, inside + tags[1] + "\n" + call(format, 2), strict) == TypeText(text="said 2")


@every
@read
def test_a_call_in_thinking_that_never_closes_is_not_done(name: str, strict: bool) -> None:
    format = format_(name)
    for text in (
        OPEN + call(format, 1),
        f"{OPEN}one\n{call(format, 1)}\n{call(format, 2)}",
        f"x{OPEN}\n{call(format, 1)}",
    ):
        parsed = format.parse(text, SCREEN, strict=strict)
        assert parsed.action is None and parsed.error is not None and parsed.error.code == "no_call", text


@every
def test_thinking_behind_the_call_is_no_answer_strictly_and_a_warning_leniently(name: str) -> None:
    format = format_(name)
    text = call(format, 1) + f"\n{OPEN}or {call(format, 2)}"
    assert format.parse(text, SCREEN, strict=True).error is not None
    parsed = format.parse(text, SCREEN, strict=False)
    assert parsed.action == TypeText(text="said 1") and any("thinking behind" in w for w in parsed.warnings)


thoughts = st.text(max_size=40) | st.sampled_from(
    ["{", "Action: ", "<tool_call>", "```", '"', "</tool_call>", "<thinking>"]
)


@every
@given(parts=st.lists(thoughts | st.integers(3, 9), max_size=5), opened=st.booleans(), strict=st.booleans())
def test_what_is_inside_thinking_never_changes_what_is_done(
    name: str, parts: list[Any], opened: bool, strict: bool
) -> None:
    """Anything but the closing tag; where the prompt opened the thinking, anything but the opening of another kind,
    too."""
    format = format_(name)
    inside = "".join(call(format, p) if isinstance(p, int) else p for p in parts).replace(CLOSE, "")
    inside = inside if opened else inside.replace("<thinking>", "")
    text = (OPEN if opened else "") + inside + CLOSE + "\n" + call(format, 1)
    assert format.parse(text, SCREEN, strict=strict) == format.parse("\n" + call(format, 1), SCREEN, strict=strict)


@every
@given(parts=st.lists(thoughts | st.integers(3, 9), max_size=5), strict=st.booleans())
def test_nothing_inside_thinking_that_is_open_is_done(name: str, parts: list[Any], strict: bool) -> None:
    format = format_(name)
    inside = "".join(call(format, p) if isinstance(p, int) else p for p in parts).replace(CLOSE, "")
    assert done(format, OPEN + inside, strict) is None


@every
def test_a_call_in_a_code_fence_is_an_example_only_if_another_follows(name: str) -> None:
    format = format_(name)
    fenced = f"For example:\n```json\n{call(format, 1)}\n```\n"
    assert done(format, fenced, strict=False) == TypeText(text="said 1")
    for text in (fenced + call(format, 2), fenced * 2 + call(format, 2), f"{fenced}So:\n{call(format, 2)}\n"):
        parsed = format.parse(text, SCREEN, strict=False)
        assert parsed.action == TypeText(text="said 2"), text
        assert any("is an example" in w for w in parsed.warnings)
    assert done(format, call(format, 2) + "\n" + fenced, strict=False) == TypeText(text="said 2")


@pytest.mark.parametrize("name", ["qwen3-vl", "qwen2.5-vl", "described", "ui-tars-1.0", "ui-tars-1.5"])
def test_strictly_the_one_call_may_come_behind_an_example_where_prose_may(name: str) -> None:
    format = format_(name)
    fenced = f"Not this:\n```\n{call(format, 1)}\n```\n"
    assert done(format, fenced + call(format, 2), strict=True) == TypeText(text="said 2")
    assert done(format, call(format, 1) + "\n" + call(format, 2), strict=True) is None


@every
@pytest.mark.parametrize(
    "text", ["<think>", "</think>", "a <thinking>\nb", "[THINK]", "<tool_call>{}</tool_call>", "```\nx\n```"]
)
def test_tags_can_be_typed(name: str, text: str) -> None:
    """A format writes them with an escape, and so may a model."""
    format = format_(name)
    written = format.render(TypeText(text=text), SCREEN)
    assert said(written) == (written, "")
    for strict in (True, False):
        assert done(format, written, strict) == TypeText(text=text)
        assert done(format, f"{OPEN}hm{CLOSE}{written}", strict) == TypeText(text=text)


def test_a_word_in_angle_brackets_is_no_tag() -> None:
    format = formats.get("qwen3-vl", "phone")
    for text in ("<thinkpad>", "< think>", "<I think>", "think>"):
        assert done(format, text + format.render(Wait(seconds=1), SCREEN), strict=True) == Wait(seconds=1)


def test_points_are_read_behind_thinking() -> None:
    format = formats.get("ui-tars-1.0", "phone")
    text = "<think>Action: click(start_box='(1,1)')</think>Thought: the icon.\nAction: click(start_box='(500,500)')"
    assert done(format, text, strict=True) == Click(x=500, y=500)
