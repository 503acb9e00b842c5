import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent import formats
from cuarl.agent.formats import ParsedAction, Size
from cuarl.agent.formats.qwen3_vl.prompt import SCHEMAS
from cuarl.agent.formats.qwen3_vl.vocabulary import WORDS
from cuarl.errors import AgentError
from cuarl.types import (
    ACTION,
    Action,
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

PHONE, DESKTOP = formats.get("qwen3-vl"), formats.get("qwen3-vl", "desktop")
SCREEN = Size(1000, 1000)


def call(tool: str = "mobile_use", **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


def code(parsed: ParsedAction) -> str | None:
    assert (parsed.action is None) == (parsed.error is not None)
    return parsed.error.code if parsed.error else None


# --- the canonical form ---------------------------------------------------------------------------------------------


def test_a_click_is_written_in_the_canonical_form() -> None:
    expected = (
        '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [512, 233]}}\n</tool_call>'
    )
    assert PHONE.render(Click(x=512, y=233), SCREEN) == expected
    assert PHONE.parse(expected, SCREEN) == ParsedAction(action=Click(x=512, y=233))


WIDTH, HEIGHT = 192, 384
xs, ys = st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
typed = st.builds(TypeText, text=texts.filter(lambda t: not t.endswith("\n")), submit=st.booleans())
keys = st.lists(st.sampled_from(["ctrl", "c", "Return", "é"]), min_size=1, max_size=3).map(tuple)
times = st.integers(1, 60_000)
shared = (
    typed
    | st.builds(Answer, text=texts)
    | st.builds(Wait, seconds=st.floats(0, 60))
    | st.builds(Key, keys=keys)
    | st.builds(Finish, success=st.booleans(), message=texts)
)
phone_actions = (
    shared
    | st.builds(Click, x=xs, y=ys)
    | st.builds(LongPress, x=xs, y=ys, duration_ms=times)
    | st.builds(Swipe, x=xs, y=ys, x2=xs, y2=ys, duration_ms=times)
    | st.builds(OpenApp, name=texts)
    | st.sampled_from(["back", "home", "recents", "menu", "enter", "power", "volume_up", "volume_down"]).map(
        lambda name: Button(name=name)
    )
)
desktop_actions = (
    shared
    | st.builds(Click, x=xs, y=ys, count=st.sampled_from([1, 2, 3]))
    | st.builds(Click, x=xs, y=ys, button=st.sampled_from(["right", "middle"]))
    | st.builds(Move, x=xs, y=ys)
    | st.builds(Drag, path=st.lists(st.tuples(xs, ys), min_size=2, max_size=4).map(tuple), duration_ms=times)
    | st.builds(
        Scroll, x=xs, y=ys, direction=st.sampled_from(["up", "down", "left", "right"]), amount=st.integers(1, 9999)
    )
    | st.builds(Scroll, direction=st.sampled_from(["up", "down"]))
)


@given(phone_actions)
def test_what_is_written_for_a_phone_reads_as_the_same_action(action: Action) -> None:
    assert PHONE.parse(PHONE.render(action, Size(WIDTH, HEIGHT)), Size(WIDTH, HEIGHT)) == ParsedAction(action=action)


@given(desktop_actions)
def test_what_is_written_for_a_desktop_reads_as_the_same_action(action: Action) -> None:
    assert DESKTOP.parse(DESKTOP.render(action, Size(WIDTH, HEIGHT)), Size(WIDTH, HEIGHT)) == ParsedAction(
        action=action
    )


@pytest.mark.parametrize(
    ("fmt", "action"),
    [
        (PHONE, Click(x=1, y=1, button="right")),
        (PHONE, Scroll(direction="down")),
        (PHONE, Move(x=1, y=1)),
        (PHONE, TypeText(text="a\n")),
        (DESKTOP, OpenApp(name="Files")),
        (DESKTOP, Click(x=1, y=1, button="right", count=2)),
        (DESKTOP, Scroll(direction="down", amount=3, unit="notch")),
    ],
)
def test_an_action_without_a_word_is_refused_rather_than_changed(fmt: formats.Format, action: Action) -> None:
    with pytest.raises(AgentError):
        fmt.render(action, SCREEN)


# --- the prompt -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", [PHONE, DESKTOP])
def test_every_word_the_prompt_offers_is_understood_and_no_other(fmt: Any) -> None:
    parameters = SCHEMAS[fmt.kind]["function"]["parameters"]
    assert set(parameters["properties"]["action"]["enum"]) == set(WORDS[fmt.kind])
    assert json.dumps(SCHEMAS[fmt.kind]) in fmt.system_prompt
    start = fmt.system_prompt.rindex("<tool_call>")
    assert fmt.parse(fmt.system_prompt[start:], SCREEN).action == Wait()


EVERY = {
    "coordinate": [10, 20], "coordinate2": [30, 40], "text": "x", "keys": ["a"], "time": 1, "status": "success",
    "button": "Back", "pixels": 5,
}  # fmt: skip


@pytest.mark.parametrize("fmt", [PHONE, DESKTOP])
def test_every_word_reads_from_arguments_of_the_schema(fmt: Any) -> None:
    for word in WORDS[fmt.kind]:
        # held keys are refused where they are no action of their own
        given = {name: value for name, value in EVERY.items() if name != "keys" or word == "key"}
        parsed = fmt.parse(call(fmt.tool, action=word, **given), SCREEN, strict=False)
        assert ACTION.validate_python(parsed.action) == parsed.action


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no_call"),
        ("I would click the icon.", "no_call"),
        ('{"action": "click"}', "no_call"),
        ('<tool_call>{"name": "mobile_use"', "no_call"),
        ("<tool_call>\n{'name': 1}\n</tool_call>", "bad_json"),
        ("<tool_call>\n[1]\n</tool_call>", "bad_json"),
        ("<tool_call>" + "[" * 100_000 + "</tool_call>", "bad_json"),
        ('<tool_call>{"name": "mobile_use", "arguments": NaN}</tool_call>', "bad_json"),
        ('<tool_call>{"name": "mobile_use", "arguments": "x"}</tool_call>', "bad_json"),
        (call(action="wait", time=1) + call(action="wait", time=1), "bad_json"),
        (call(action="wait", time=1) + " done", "bad_json"),
        (call("computer_use", action="wait", time=1), "unknown_tool"),
        (call(action="teleport"), "unsupported_action"),
        (call(action="left_click", coordinate=[1, 1]), "unsupported_on_device"),
        (call(), "missing_argument"),
        (call(action=["click"]), "bad_argument"),
        (call(action="click"), "missing_argument"),
        (call(action="click", coordinate=None), "missing_argument"),
        (call(action="click", coordinate=[1]), "bad_argument"),
        (call(action="click", coordinate="1, 2"), "bad_argument"),
        (call(action="click", coordinate=["a", 2]), "bad_argument"),
        (call(action="click", coordinate=[True, 2]), "bad_argument"),
        (call(action="click", coordinate=[10**400, 2]), "bad_argument"),
        (call(action="click", coordinate=[1480, 300]), "out_of_range"),
        (call(action="click", coordinate=[-80, 300]), "out_of_range"),
        (call(action="click", coordinate=[1, 2, 3, 4]), "bad_argument"),
        (call(action="click", coordinate=[1, 2], reason="x"), "bad_argument"),
        (call(action="swipe", coordinate=[1, 2]), "missing_argument"),
        (call(action="type"), "missing_argument"),
        (call(action="type", text=5), "bad_argument"),
        (call(action="type", text="\ud800"), "bad_argument"),
        (call(action="type", text="a\0b"), "bad_argument"),
        (call(action="system_button", button="back"), "bad_argument"),
        (call(action="system_button", button="Escape"), "bad_argument"),
        (call(action="key", keys=[]), "bad_argument"),
        (call(action="wait", time=-1), "bad_argument"),
        (call(action="wait", time=61), "out_of_range"),
        (call(action="long_press", coordinate=[1, 2], time=0), "bad_argument"),
        (call(action="terminate", status="done"), "bad_argument"),
    ],
)
def test_a_fault_has_a_code(text: str, expected: str) -> None:
    assert code(PHONE.parse(text, SCREEN)) == expected


@given(st.text() | st.text().map(lambda t: f"<tool_call>{t}</tool_call>"), st.booleans())
def test_reading_never_raises(text: str, strict: bool) -> None:
    code(PHONE.parse(text, SCREEN, strict=strict))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(WORDS["desktop"]),
    st.dictionaries(st.sampled_from([*EVERY, "path"]), json_values, max_size=4),
    st.booleans(),
)
def test_any_arguments_give_a_valid_action_or_an_error(word: str, arguments: dict[str, Any], strict: bool) -> None:
    parsed = DESKTOP.parse(call("computer_use", action=word, **arguments), SCREEN, strict=strict)
    if code(parsed) is None:
        assert ACTION.validate_python(parsed.action.model_dump()) == parsed.action  # type: ignore[union-attr]


# --- cases that users met -------------------------------------------------------------------------------------------

TRAILING = [
    (
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [500, 250]}}\n'
        "Done, see [1].\n</tool_call>",
        Click(x=640, y=180),
    ),
    (
        'I will click.\n```json\n{"action": "left_click", "coordinate": [500, 250]}\n```\nSee {docs} or [docs].',
        Click(x=640, y=180),
    ),
    ('{"action": "type", "text": "line one\nline two"}', TypeText(text="line one\nline two")),
]


@pytest.mark.parametrize(("text", "action"), TRAILING)
def test_c07_prose_around_a_call_is_a_warning_in_evaluation_and_an_error_in_training(text: str, action: Action) -> None:
    lenient = DESKTOP.parse(text, Size(1280, 720), strict=False)
    assert lenient.action == action and lenient.warnings
    assert code(DESKTOP.parse(text, Size(1280, 720))) in ("bad_json", "no_call")


def test_a_thought_may_precede_the_call() -> None:
    text = "The switch is off.\nAction: tap it.\n" + call(action="click", coordinate=[1, 2])
    assert PHONE.parse(text, SCREEN) == ParsedAction(action=Click(x=1, y=2))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pixels": -300}, Scroll(direction="down", amount=300)),
        ({"pixels": 300, "coordinate": [640, 360]}, Scroll(x=640, y=360, direction="up", amount=300)),
    ],
)
def test_positive_pixels_scroll_up(arguments: dict[str, Any], expected: Action) -> None:
    assert DESKTOP.parse(call("computer_use", action="scroll", **arguments), SCREEN).action == expected


def test_positive_pixels_scroll_sideways_to_the_right() -> None:
    parsed = DESKTOP.parse(call("computer_use", action="hscroll", pixels=20), SCREEN)
    assert parsed.action == Scroll(direction="right", amount=20)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": [[100, 100], [180, 100], [300, 260]]}, Drag(path=((100, 100), (180, 100), (300, 260)))),
        ({"coordinate": [100, 100], "coordinate2": [300, 260]}, Drag(path=((100, 100), (300, 260)))),
        ({"path": [[100, 100]]}, "bad_argument"),
        ({"coordinate2": [300, 260]}, "missing_argument"),
        ({}, "missing_argument"),
    ],
)
def test_a_drag_keeps_every_point_and_invents_none(arguments: dict[str, Any], expected: Action | str) -> None:
    parsed = DESKTOP.parse(call("computer_use", action="left_click_drag", **arguments), SCREEN)
    assert (parsed.error.code if parsed.error else parsed.action) == expected


@pytest.mark.parametrize(
    ("point", "pixel"),
    [([1000, 1000], (1079, 2399)), ([999, 999], (1079, 2398)), ([0, 0], (0, 0)), ([500, 250], (540, 600))],
)
def test_a_point_is_the_nearest_pixel_on_the_screen(point: list[int], pixel: tuple[int, int]) -> None:
    parsed = PHONE.parse(call(action="click", coordinate=point), Size(1080, 2400))
    assert parsed == ParsedAction(action=Click(x=pixel[0], y=pixel[1]))


def test_a_small_overshoot_is_clamped_and_flagged() -> None:
    parsed = PHONE.parse(call(action="click", coordinate=[1050, -50]), Size(1080, 2400))
    assert parsed.action == Click(x=1079, y=0)
    assert len(parsed.warnings) == 1 and "clamped" in parsed.warnings[0]
    assert code(PHONE.parse(call(action="click", coordinate=[1051, 0]), Size(1080, 2400))) == "out_of_range"


@pytest.mark.parametrize(
    ("text", "action", "warning"),
    [
        (call(action="click", coordinate=[40, 900, 60, 940]), Click(x=50, y=920), "box"),
        (call(action="click", coordinate=["40", 90]), Click(x=40, y=90), "number as text"),
        (call(action="system_button", button="back"), Button(name="back"), "instead of"),
        (call(action="wait", time=90), Wait(seconds=60), "cut"),
        (call(action="wait", time=1, reason="x"), Wait(), "needless"),
        (
            json.dumps({"name": "mobile_use", "arguments": json.dumps({"action": "wait", "time": 1})}), Wait(),
            "holds JSON",
        ),
    ],
)  # fmt: skip
def test_small_faults_are_repaired_in_evaluation_with_a_warning(text: str, action: Action, warning: str) -> None:
    parsed = PHONE.parse(text, SCREEN, strict=False)
    assert parsed.action == action
    assert any(warning in w for w in parsed.warnings)


def test_the_older_form_of_key_is_read() -> None:
    assert PHONE.parse(call(action="key", text="volume_up"), SCREEN).action == Button(name="volume_up")
    assert DESKTOP.parse(call("computer_use", action="key", keys=["ctrl", "c"]), SCREEN).action == Key(
        keys=("ctrl", "c")
    )
