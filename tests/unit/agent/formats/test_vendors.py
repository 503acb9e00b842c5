"""OpenAI's, Anthropic's and Gemini's vocabularies, by cases that users met and by their own documents."""

import json
import re
import time
from typing import Any

import pytest

from cuarl.agent import formats
from cuarl.agent.formats import ParsedAction, Size
from cuarl.agent.formats.anthropic.format import fitting
from cuarl.agent.wording import instead
from cuarl.errors import AgentError
from cuarl.types import (
    Action,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

THOUSAND = Size(1000, 1000)
OPENAI, ANTHROPIC, GEMINI = (formats.get(n, "desktop") for n in ("openai", "anthropic", "gemini"))
OPENAI_PHONE, ANTHROPIC_PHONE, GEMINI_PHONE = (formats.get(n) for n in ("openai", "anthropic", "gemini"))


def call(**action: object) -> str:
    return json.dumps({"type": "computer_call", "action": action})


def use(**given: object) -> str:
    return json.dumps({"type": "tool_use", "name": "computer", "input": given})


# --- OpenAI ---------------------------------------------------------------------------------------------------------


def test_c06_positive_scrolls_down_and_to_the_right() -> None:
    text = '{"type":"scroll","x":640,"y":360,"scroll_x":0,"scroll_y":-240}'
    parsed = OPENAI.parse(text, THOUSAND, strict=False)
    assert parsed.action == Scroll(x=640, y=360, direction="up", amount=240)
    assert any("computer_call" in w for w in parsed.warnings)
    across = OPENAI.parse(call(type="scroll", x=1, y=2, scroll_x=30, scroll_y=0), THOUSAND)
    assert across == ParsedAction(action=Scroll(x=1, y=2, direction="right", amount=30))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type":"drag","path":[{"x":100,"y":100},{"x":180,"y":100},{"x":300,"y":260}]}',
         Drag(path=((100, 100), (180, 100), (300, 260)))),
        ('{"type":"drag","path":[[100,100],[300,260]]}', Drag(path=((100, 100), (300, 260)))),
        ('{"type":"drag","path":[{"x":100,"y":100}]}', "bad_argument"),
        ('{"type":"drag"}', "missing_argument"),
    ],
)  # fmt: skip
def test_c11_a_path_keeps_its_points_and_none_is_made_up(text: str, expected: Action | str) -> None:
    parsed = OPENAI.parse(text, THOUSAND, strict=False)
    assert (parsed.error.code if parsed.error else parsed.action) == expected


def test_the_output_items_of_a_reply_are_read_whole_in_evaluation() -> None:
    items = [
        {"type": "reasoning", "summary": []},
        {
            "type": "computer_call",
            "call_id": "c1",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "click", "button": "wheel", "x": 3, "y": 4},
        },
    ]
    parsed = OPENAI.parse(json.dumps(items), THOUSAND, strict=False)
    assert parsed.action == Click(x=3, y=4, button="middle") and parsed.warnings
    assert OPENAI.parse(json.dumps(items), THOUSAND).error is not None
    assert OPENAI.parse(json.dumps(items[1]), THOUSAND) == ParsedAction(action=parsed.action)


def test_of_a_batch_of_actions_the_first_counts_in_evaluation_alone() -> None:
    one, two = {"type": "wait"}, {"type": "click", "x": 1, "y": 1}
    text = json.dumps({"type": "computer_call", "actions": [two, one]})
    assert OPENAI.parse(text, THOUSAND, strict=False).action == Click(x=1, y=1)
    assert OPENAI.parse(text, THOUSAND).error is not None


def test_a_message_ends_the_task_and_a_refusal_gives_it_up() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "5 pm"}]}
    assert OPENAI.parse(json.dumps(said), THOUSAND).action == Finish(message="5 pm")
    assert OPENAI.parse(OPENAI.render(Finish(success=False, message="no"), THOUSAND), THOUSAND).action == Finish(
        success=False, message="no"
    )


def test_a_phones_buttons_are_keys() -> None:
    assert OPENAI_PHONE.parse(call(type="keypress", keys=["BACK"]), THOUSAND).action == Button(name="back")
    assert ANTHROPIC_PHONE.parse(use(action="key", text="home"), THOUSAND).action == Button(name="home")
    assert ANTHROPIC.parse(use(action="key", text="home"), THOUSAND).action == Key(keys=("home",))


# --- Anthropic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "action"),
    [
        ({"action": "triple_click", "coordinate": [3, 4]}, Click(x=3, y=4, count=3)),
        ({"action": "key", "text": "ctrl+s"}, Key(keys=("ctrl", "s"))),
        ({"action": "scroll", "coordinate": [3, 4], "scroll_direction": "down", "scroll_amount": 5},
         Scroll(x=3, y=4, direction="down", amount=5, unit="notch")),
        ({"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}, Drag(path=((1, 2), (3, 4)))),
        ({"action": "wait", "duration": 2}, Wait(seconds=2)),
        ({"action": "screenshot"}, Wait(seconds=0)),
    ],
)  # fmt: skip
def test_blocks_of_the_computer_tool(given: dict[str, object], action: Action) -> None:
    screen = Size(900, 700)
    assert fitting(screen) == screen
    assert ANTHROPIC.parse(use(**given), screen) == ParsedAction(action=action)


@pytest.mark.parametrize("action", ["hold_key", "cursor_position", "zoom"])
def test_what_no_device_here_can_do_is_named(action: str) -> None:
    parsed = ANTHROPIC.parse(use(action=action), THOUSAND)
    assert parsed.error is not None and parsed.error.code == "unsupported_action" and action in parsed.error.message


@pytest.mark.parametrize("screen", [(1920, 1080), (1080, 2400), (2560, 1600), (5000, 200), (1024, 768), (10, 3000)])
def test_pictures_are_shrunk_as_little_as_the_service_asks(screen: tuple[int, int]) -> None:
    def allowed(width: int, height: int) -> bool:
        return max(width, height) <= 1568 and -(-width // 28) * -(-height // 28) <= 1568

    width, height = fitting(Size(*screen))
    assert allowed(width, height)
    assert abs(width / height - screen[0] / screen[1]) * min(width, height) <= screen[0] / screen[1] + 1
    long = max(screen)
    if (width, height) != screen:
        more = max(width, height) + 1
        assert not allowed(round(screen[0] * more / long), round(screen[1] * more / long))


def test_clicks_on_a_shrunk_picture_land_on_the_screen() -> None:
    screen = Size(2560, 1600)
    sent = ANTHROPIC.sent(screen)
    assert sent < screen
    parsed = ANTHROPIC.parse(use(action="left_click", coordinate=[sent.width // 2, sent.height // 2]), screen)
    assert isinstance(parsed.action, Click)
    assert abs(parsed.action.x - 1280) <= 1 and abs(parsed.action.y - 800) <= 1


# --- parts of an action that are not carried out -------------------------------------------------------------------

AT = {"x": 310, "y": 220}
ENDS = {"path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}
WHEEL = {"scroll_x": 0, "scroll_y": 50}
CLICK = {"action": "left_click", "coordinate": [310, 220]}
SLIDE = {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}
TURN = {"action": "scroll", "coordinate": [3, 4], "scroll_direction": "down", "scroll_amount": 5}
HELD = [
    (OPENAI, call(type="click", button="left", **AT, keys=["SHIFT"]), Click(x=310, y=220, held=("SHIFT",))),
    (OPENAI, call(type="double_click", **AT, keys=["CTRL"]), Click(x=310, y=220, count=2, held=("CTRL",))),
    (OPENAI, call(type="move", **AT, keys=["CTRL"]), Move(x=310, y=220, held=("CTRL",))),
    (OPENAI, call(type="drag", **ENDS, keys=["CTRL", "ALT"]), Drag(path=((1, 2), (3, 4)), held=("CTRL", "ALT"))),
    (OPENAI, call(type="scroll", **AT, **WHEEL, keys=["CTRL"]),
     Scroll(x=310, y=220, direction="down", amount=50, held=("CTRL",))),
    (ANTHROPIC, use(**CLICK, text="shift"), Click(x=310, y=220, held=("shift",))),
    (ANTHROPIC, use(action="right_click", coordinate=[1, 2], text="ctrl+alt"),
     Click(x=1, y=2, button="right", held=("ctrl", "alt"))),
    (ANTHROPIC, use(action="mouse_move", coordinate=[1, 2], text="ctrl"), Move(x=1, y=2, held=("ctrl",))),
    (ANTHROPIC, use(**SLIDE, text="alt"), Drag(path=((1, 2), (3, 4)), held=("alt",))),
    (ANTHROPIC, use(**TURN, text="ctrl"),
     Scroll(x=3, y=4, direction="down", amount=5, unit="notch", held=("ctrl",))),
    (ANTHROPIC, use(action="key", text="Down", repeat=3), Key(keys=("Down",), count=3)),
    (ANTHROPIC, use(action="left_mouse_down"), MouseDown()),
    (ANTHROPIC, use(action="left_mouse_up", coordinate=[3, 4]), MouseUp(x=3, y=4)),
    (GEMINI, json.dumps({"name": "mouse_down", "args": {"x": 5, "y": 6}}), MouseDown(x=5, y=6)),
    (GEMINI, json.dumps({"name": "mouse_up", "args": {"x": 5, "y": 6}}), MouseUp(x=5, y=6)),
    (GEMINI, json.dumps({"name": "key_down", "args": {"key": "shift"}}), KeyDown(key="shift")),
    (GEMINI, json.dumps({"name": "key_up", "args": {"key": "shift"}}), KeyUp(key="shift")),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text", "action"), HELD)
def test_held_keys_repeats_and_halves_of_presses_are_read_and_written(
    format: formats.Format, text: str, action: Action
) -> None:
    assert format.parse(text, THOUSAND) == ParsedAction(action=action)
    assert format.parse(format.render(action, THOUSAND), THOUSAND) == ParsedAction(action=action)


@pytest.mark.parametrize(
    ("format", "text", "action"),
    [
        (OPENAI, call(type="keypress", keys=["DOWN"], repeat=5), Key(keys=("DOWN",), count=5)),
        (GEMINI, json.dumps({"name": "press_key", "args": {"key": "Down", "repeat": 2}}), Key(keys=("Down",), count=2)),
        (ANTHROPIC, use(**CLICK, key="shift"), Click(x=310, y=220, held=("shift",))),
    ],
)
def test_what_another_family_has_a_word_for_is_done_in_evaluation_alone(
    format: formats.Format, text: str, action: Action
) -> None:
    parsed = format.parse(text, THOUSAND, strict=False)
    assert parsed.action == action and parsed.warnings
    assert format.parse(text, THOUSAND).error is not None


@pytest.mark.parametrize("name", formats.NAMES)
@pytest.mark.parametrize("kind", ["phone", "desktop"])
@pytest.mark.parametrize(
    "action", [Click(x=1, y=2, held=("ctrl",)), Key(keys=("Down",), count=3), MouseDown(), KeyDown(key="shift")]
)
def test_what_a_family_has_no_word_for_is_never_said_as_something_else(name: str, kind: Any, action: Action) -> None:
    format = formats.get(name, kind)
    try:
        text = format.render(action, THOUSAND)
    except AgentError:
        return
    assert format.parse(text, THOUSAND).action == action


def test_a_scroll_with_keys_held_is_not_shown_as_a_slide_without_them() -> None:
    scroll = Scroll(x=5, y=6, direction="down")
    assert isinstance(instead(scroll, THOUSAND), Swipe)
    assert instead(scroll.model_copy(update={"held": ("ctrl",)}), THOUSAND) is None


NOT_CARRIED_OUT = [
    (OPENAI, call(type="click", **AT, clicks=2), "repeats.*clicks 2"),
    (OPENAI, call(type="type", text="a", press_enter=True), "parts of typing"),
    (ANTHROPIC, use(**CLICK, repeat=2), "repeats"),
    (ANTHROPIC, use(action="key", text="Down", repeat=0), "repeat must be from 1"),
    (ANTHROPIC, use(**CLICK, text="ctrl++"), "text must name keys"),
    (OPENAI, call(type="click", **AT, keys=[1]), "keys must name keys"),
    (GEMINI, json.dumps({"name": "click", "args": {"x": 5, "y": 6, "modifiers": ["shift"]}}), "held keys"),
    (GEMINI, json.dumps({"name": "type", "args": {"text": "a", "clear_before_typing": True}}), "parts of typing"),
    (formats.get("json", "desktop"), json.dumps({**CLICK, "keys": ["ctrl"]}), "held keys"),
    (formats.get("json", "desktop"), json.dumps({**CLICK, "count": 2}), "repeats"),
    (OPENAI_PHONE, call(type="click", **AT, keys=["SHIFT"]), "held keys"),
    (ANTHROPIC_PHONE, use(**CLICK, text="shift"), "held keys"),
]  # fmt: skip


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
@pytest.mark.parametrize(("format", "text", "says"), NOT_CARRIED_OUT)
def test_b11_held_keys_and_repeats_are_refused_by_name(
    format: formats.Format, text: str, says: str, strict: bool
) -> None:
    """A plain click in the place of one with Shift would be another action."""
    parsed = format.parse(text, THOUSAND, strict=strict)
    assert parsed.action is None and parsed.error is not None and parsed.error.code == "bad_argument"
    assert re.search(says, parsed.error.message), parsed.error.message


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (OPENAI, call(type="click", **AT, keys=[])),
        (OPENAI, call(type="click", **AT, keys=None)),
        (ANTHROPIC, use(**CLICK, text="")),
        (ANTHROPIC, use(**CLICK, repeat=1)),
        (OPENAI, call(type="click", **AT, note="the icon")),
    ],
)
def test_b11_what_asks_for_nothing_more_is_a_warning_in_evaluation(format: formats.Format, text: str) -> None:
    parsed = format.parse(text, THOUSAND, strict=False)
    assert parsed.action == Click(x=310, y=220) and any("needless" in w for w in parsed.warnings)
    assert format.parse(text, THOUSAND).error is not None


# --- Gemini ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "action"),
    [
        ("click", {"x": 500, "y": 250, "intent": "open it"}, Click(x=500, y=250)),
        ("type", {"text": "a\n", "press_enter": True}, TypeText(text="a\n", submit=True)),
        ("hotkey", {"keys": ["ctrl", "c"]}, Key(keys=("ctrl", "c"))),
        ("scroll", {"x": 1, "y": 2, "direction": "left"}, Scroll(x=1, y=2, direction="left", amount=300)),
        ("drag_and_drop", {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}, Drag(path=((1, 2), (3, 4)))),
        ("wait", {}, Wait(seconds=1)),
        ("take_screenshot", {}, Wait(seconds=0)),
    ],
)  # fmt: skip
def test_functions_of_the_desktop(name: str, args: dict[str, object], action: Action) -> None:
    assert GEMINI.parse(json.dumps({"name": name, "args": args}), THOUSAND) == ParsedAction(action=action)


@pytest.mark.parametrize(
    ("name", "args", "action"),
    [
        ("long_press", {"x": 5, "y": 6}, LongPress(x=5, y=6, duration_ms=2000)),
        ("go_back", {}, Button(name="back")),
        ("press_key", {"key": "HOME"}, Button(name="home")),
        ("press_key", {"key": "Enter"}, Key(keys=("Enter",))),
        ("drag_and_drop", {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}, Swipe(x=1, y=2, x2=3, y2=4)),
    ],
)
def test_functions_of_a_phone(name: str, args: dict[str, object], action: Action) -> None:
    assert GEMINI_PHONE.parse(json.dumps({"name": name, "args": args}), THOUSAND) == ParsedAction(action=action)


def test_a_call_in_its_frame_is_read_in_evaluation() -> None:
    text = json.dumps({"functionCall": {"name": "wait", "args": {}}})
    assert GEMINI.parse(text, THOUSAND, strict=False).action == Wait()
    assert GEMINI.parse(text, THOUSAND).error is not None
    assert GEMINI.parse('{"text": "5 pm"}', THOUSAND).action == Finish(message="5 pm")
    assert GEMINI.parse('{"name": "click_at", "args": {}}', THOUSAND).error is not None


# --- repairs --------------------------------------------------------------------------------------------------------


BROKEN = [
    (OPENAI, "{'type': 'computer_call', 'action': {'type': 'wait'}}", Wait(seconds=2)),
    (ANTHROPIC, '{"type": "tool_use", "name": "computer", "input": {"action": "wait", "duration": 1}', Wait()),
    (GEMINI, '{"name": "click", "args": {"x": 5, "y": 6,}}', Click(x=5, y=6)),
    (formats.get("json"), '{"action": "click", coordinate: [5, 6]}', Click(x=5, y=6)),
    (formats.get("qwen3-vl"),
        '<tool_call>{"name": "mobile_use", "arguments": {"action": "wait", "time": 1}</tool_call>',
     Wait()),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text", "action"), BROKEN)
def test_broken_json_is_repaired_in_evaluation_recorded_and_never_in_training(
    format: formats.Format, text: str, action: Action
) -> None:
    lenient = format.parse(text, Size(1000, 1000), strict=False)
    assert lenient.action == action
    assert lenient.guessed and any("json-repair" in w or "brackets are missing" in w for w in lenient.warnings)
    strict = format.parse(text, Size(1000, 1000))
    assert strict.action is None and strict.error is not None and strict.warnings == ()


def test_c06_plain_json_reads_notches_of_another_family_in_evaluation() -> None:
    text = '{"action":"scroll","coordinate":[640,360],"scroll_direction":"right","scroll_amount":3}'
    parsed = formats.get("json", "desktop").parse(text, THOUSAND, strict=False)
    assert parsed.action == Scroll(x=640, y=360, direction="right", amount=3, unit="notch")
    assert parsed.warnings
    assert formats.get("json", "desktop").parse(text, THOUSAND).error is not None


def test_nothing_that_is_no_call_is_repaired_into_one() -> None:
    for text in ("I would click {the icon}.", "{", "{}", "{]"):
        assert formats.get("json").parse(text, THOUSAND, strict=False).action is None


@pytest.mark.parametrize(
    "text", ['{"' * 9000, '{"a":' * 4000, "[{" * 9000, '{"action": "type", "text": "' + 'x"y' * 6000]
)
def test_an_answer_far_from_any_call_is_not_repaired_for_ever(text: str) -> None:
    began = time.process_time()
    for name in formats.NAMES:
        assert formats.get(name, "desktop").parse(text, THOUSAND, strict=False).action is None
    assert time.process_time() - began < 2
