"""What holds for every format: its own words come back, points come back, nothing raises, prompts tell the truth."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent import formats
from cuarl.agent.formats import ParsedAction, Size
from cuarl.agent.formats.family import Family
from cuarl.errors import AgentError
from cuarl.policy.resize import whole_tokens
from cuarl.types import (
    ACTION,
    Action,
    Answer,
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
    OpenApp,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

BOTH = [(name, kind) for name in formats.NAMES for kind in ("phone", "desktop")]
every = pytest.mark.parametrize(("name", "kind"), BOTH)
WIDTH, HEIGHT = 192, 384
SCREEN = Size(WIDTH, HEIGHT)

xs, ys = st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
directions = st.sampled_from(["up", "down", "left", "right"])
helds = st.just(()) | st.lists(st.sampled_from(["ctrl", "SHIFT", "space", "+"]), max_size=2).map(tuple)
durations = st.sampled_from([300, 500, 600, 2000]) | st.integers(1, 60_000)
ACTIONS = {
    "click": st.builds(
        Click, x=xs, y=ys, button=st.sampled_from(["left", "right", "middle"]), count=st.sampled_from([1, 2, 3]),
        held=helds
    ),
    "long_press": st.builds(LongPress, x=xs, y=ys, duration_ms=durations),
    "move": st.builds(Move, x=xs, y=ys, held=helds),
    "mouse_down": st.builds(MouseDown, x=xs, y=ys) | st.builds(MouseDown, button=st.sampled_from(["left", "right"])),
    "mouse_up": st.builds(MouseUp, x=xs, y=ys) | st.builds(MouseUp),
    "key_down": st.builds(KeyDown, key=st.sampled_from(["ctrl", "é"])),
    "key_up": st.builds(KeyUp, key=st.sampled_from(["ctrl", "é"])),
    "swipe": st.builds(Swipe, x=xs, y=ys, x2=xs, y2=ys, duration_ms=durations),
    "drag": st.builds(Drag, path=st.lists(st.tuples(xs, ys), min_size=2, max_size=3).map(tuple), duration_ms=durations),
    "scroll": st.builds(
        Scroll, x=xs, y=ys, direction=directions, amount=st.integers(1, 999), unit=st.sampled_from(["px", "notch"])
    )
    | st.builds(Scroll, direction=directions, unit=st.sampled_from(["px", "notch"])),
    "type": st.builds(TypeText, text=texts, submit=st.booleans()),
    "key": st.builds(
        Key, keys=st.lists(st.sampled_from(["ctrl", "c", "Return", "é", "+", "home", "a b"]), min_size=1,
            max_size=3).map(tuple), count=st.sampled_from([1, 1, 2, 100])
    ),
    "button": st.sampled_from(["back", "home", "recents", "menu", "power", "volume_up", "volume_down", "enter"]).map(
        lambda name: Button(name=name)
    ),
    "open_app": st.builds(OpenApp, name=texts),
    "wait": st.builds(Wait, seconds=st.sampled_from([0, 1, 2, 5]) | st.floats(0, 60)),
    "answer": st.builds(Answer, text=texts),
    "finish": st.builds(Finish, success=st.booleans(), message=texts),
}  # fmt: skip
SAYS = {
    ("qwen3-vl", "phone"): "click long_press swipe type key button open_app wait answer finish",
    ("qwen3-vl", "desktop"): "click move drag scroll type key wait answer finish",
    ("qwen2.5-vl", "phone"): "click long_press swipe type key button open_app wait answer finish",
    ("qwen2.5-vl", "desktop"): "click move drag scroll type key wait answer finish",
    ("json", "phone"): "click long_press swipe type key button open_app wait answer finish",
    ("json", "desktop"): "click move drag scroll type key wait answer finish",
    ("ui-tars-1.0", "phone"): "click long_press swipe type button open_app wait finish",
    ("ui-tars-1.0", "desktop"): "click drag scroll type key wait finish",
    ("ui-tars-1.5", "phone"): "click long_press swipe type button open_app wait finish",
    ("ui-tars-1.5", "desktop"): "click drag scroll type key wait finish",
    ("openai", "phone"): "click long_press swipe type key button wait finish",
    ("openai", "desktop"): "click move drag scroll type key wait finish",
    ("anthropic", "phone"): "click long_press swipe type key button wait finish",
    ("anthropic", "desktop"): "click move mouse_down mouse_up drag scroll type key wait finish",
    ("gemini", "phone"): "click long_press swipe type key button open_app wait finish",
    ("gemini", "desktop"): "click move mouse_down mouse_up drag scroll type key key_down key_up wait finish",
}


def family(name: str, kind: Any) -> Family:
    found = formats.get(name, kind)
    assert isinstance(found, Family)
    return found


def rendered(format: Family, action: Action, screen: Size = SCREEN, resized: Size | None = None) -> str | None:
    try:
        return format.render(action, screen, resized=resized)
    except AgentError:
        return None


def test_the_table_of_words_has_every_format() -> None:
    assert set(SAYS) == set(BOTH)


@every
@given(data=st.data())
def test_what_a_format_writes_it_reads_as_the_same_action(name: str, kind: str, data: st.DataObject) -> None:
    """Strictly, at any size at which the picture may have been seen, as long as that is no coarser than the screen."""
    format = family(name, kind)
    action = data.draw(st.one_of(*(ACTIONS[word] for word in SAYS[name, kind].split())))
    resized = data.draw(st.builds(Size, st.integers(WIDTH, 4000), st.integers(HEIGHT, 4000)) | st.none())
    text = rendered(format, action, resized=resized)
    if text is not None:
        assert format.parse(text, SCREEN, resized=resized) == ParsedAction(action=action), text


@every
def test_a_format_has_words_for_the_actions_it_is_said_to_have_and_no_others(name: str, kind: str) -> None:
    common = [
        Click(x=1, y=2), LongPress(x=1, y=2), Move(x=1, y=2), Swipe(x=1, y=2, x2=3, y2=4), Drag(path=((1, 2), (3, 4))),
        TypeText(text="a"), Key(keys=("Tab",)), Button(name="home"), OpenApp(name="Clock"), Answer(text="5"), Finish(),
        Wait(seconds=5), Wait(seconds=2), Scroll(x=1, y=2, direction="up"),
        Scroll(x=1, y=2, direction="up", amount=3, unit="notch"), MouseDown(x=1, y=2), MouseUp(x=1, y=2),
        KeyDown(key="ctrl"), KeyUp(key="ctrl"),
    ]  # fmt: skip
    format = family(name, kind)
    assert {a.kind for a in common if rendered(format, a) is not None} == set(SAYS[name, kind].split())


PROMPTS = {
    ("qwen3-vl", "phone"): "73cad6ef9a9940f0",
    ("qwen3-vl", "desktop"): "232c72081c63b5ff",
    ("qwen2.5-vl", "phone"): "5e0bf5b4c1d68a1b",
    ("qwen2.5-vl", "desktop"): "b9b8950f49ea6f49",
    ("ui-tars-1.0", "phone"): "f10d64fc4235d879",
    ("ui-tars-1.0", "desktop"): "45aec5790986ab73",
    ("ui-tars-1.5", "phone"): "c359039eb71789ef",
    ("ui-tars-1.5", "desktop"): "b448feff47dd2c7b",
    ("openai", "phone"): "6f7d011380bfc06b",
    ("anthropic", "phone"): "f98d5c8a74f48c57",
    ("gemini", "phone"): "c73f4e3b98842bc8",
    ("json", "phone"): "49692714731734f5",
    ("json", "desktop"): "93433da79ea83f1c",
}
"""The first half of the SHA-256 of prompts that policies were trained on."""


@pytest.mark.parametrize(("name", "kind"), PROMPTS)
def test_prompts_of_phones_and_of_the_shipped_base_stay_as_they_are(name: str, kind: Any) -> None:
    """A policy that was trained on a prompt must find the same words again: change these only with the weights."""
    prompt = family(name, kind).system_prompt
    assert hashlib.sha256(prompt.encode()).hexdigest()[:16] == PROMPTS[name, kind]


# --- coordinates ----------------------------------------------------------------------------------------------------

sizes = st.builds(Size, st.integers(40, 4000), st.integers(40, 4000))


@every
@given(data=st.data(), screen=sizes)
def test_points_come_back_within_half_a_step_of_the_grid(
    name: str, kind: str, data: st.DataObject, screen: Size
) -> None:
    """Exactly where the grid is at least as fine as the screen; else half a step and half a pixel of rounding."""
    format = family(name, kind)
    x, y = data.draw(st.integers(0, screen.width - 1)), data.draw(st.integers(0, screen.height - 1))
    action = format.parse(format.render(Click(x=x, y=y), screen), screen).action
    assert isinstance(action, Click)
    grid = format.grid(screen, None)
    for got, meant, side, steps in ((action.x, x, screen.width, grid.width), (action.y, y, screen.height, grid.height)):
        end = name == "gemini" and meant * steps / side > steps - 1.5  # 999 is the last it says
        assert abs(got - meant) <= (0 if side <= steps else side / steps / 2 + 0.5) + (side / steps if end else 0)


@pytest.mark.parametrize(
    ("screen", "max_pixels", "resized", "said", "pixel"),
    [
        ((1920, 1080), 12_845_056, (1932, 1092), (966, 546), (960, 540)),
        ((1920, 1080), 1_003_520, (1316, 728), (658, 364), (960, 540)),
        ((1080, 2400), 12_845_056, (1092, 2408), (546, 1204), (540, 1200)),
        ((1080, 2400), 1_003_520, (672, 1484), (336, 742), (540, 1200)),
    ],
)
@pytest.mark.parametrize("name", ["qwen2.5-vl", "ui-tars-1.5"])
def test_c13_pixels_are_those_of_the_picture_that_was_really_seen(
    name: str, screen: Any, max_pixels: int, resized: Any, said: Any, pixel: Any
) -> None:
    format = family(name, "phone")
    if max_pixels == 12_845_056:
        assert format.seen(Size(*screen)) == resized
        assert format.parse(format.render(Click(x=pixel[0], y=pixel[1]), Size(*screen)), Size(*screen)).action == Click(
            x=pixel[0], y=pixel[1]
        )
    text = format.render(Click(x=pixel[0], y=pixel[1]), Size(*screen), resized=Size(*resized))
    assert str(said[0]) in text and str(said[1]) in text
    action = format.parse(text, Size(*screen), resized=Size(*resized)).action
    assert action == Click(x=pixel[0], y=pixel[1])


@pytest.mark.parametrize(
    ("name", "screen", "text", "pixel"),
    [
        ("qwen3-vl", (1080, 2400), "[500, 250]", (540, 600)),
        ("ui-tars-1.0", (1920, 1080), "(500,250)", (960, 270)),
        ("ui-tars-1.5", (1920, 1080), "(500,250)", (497, 247)),
    ],
)
def test_c14_releases_of_one_family_mean_different_places(name: str, screen: Any, text: str, pixel: Any) -> None:
    call = (
        f'<tool_call>{{"name": "mobile_use", "arguments": {{"action": "click", "coordinate": {text}}}}}</tool_call>'
        if name == "qwen3-vl"
        else f"Thought: near 123, 456.\nAction: click(start_box='{text}')"
    )
    assert family(name, "phone").parse(call, Size(*screen)).action == Click(x=pixel[0], y=pixel[1])


def test_c15_a_box_past_the_edge_is_cut_at_it_and_flagged() -> None:
    format = family("qwen2.5-vl", "phone")
    assert format.seen(Size(400, 500)) == (392, 504)
    box = '{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [40, 280, 160, 520]}}'
    parsed = format.parse(f"<tool_call>{box}</tool_call>", Size(400, 500), strict=False)
    assert parsed.action == Click(x=102, y=389)
    assert any("clamped" in w for w in parsed.warnings)


def test_c17_a_point_lands_on_the_screenshot_whose_device_then_halves_it() -> None:
    screen, seen = Size(2560, 1600), Size(1260, 784)
    assert whole_tokens(*screen, side=28, min_pixels=3136, max_pixels=1_003_520) == seen
    call = '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [630, 392]}}'
    parsed = family("qwen2.5-vl", "desktop").parse(f"<tool_call>{call}</tool_call>", screen, resized=seen)
    assert parsed.action == Click(x=1280, y=800)


def test_gemini_never_says_a_thousand() -> None:
    assert '"x": 999, "y": 999' in family("gemini", "phone").render(Click(x=1079, y=2399), Size(1080, 2400))


# --- prompts --------------------------------------------------------------------------------------------------------


@every
def test_every_call_that_a_prompt_offers_is_read_strictly(name: str, kind: str) -> None:
    format = family(name, kind)
    examples = getattr(format, "examples", ())
    assert examples or name in ("qwen3-vl", "qwen2.5-vl", "json"), "those have a schema instead, with tests of its own"
    for example in examples:
        call = f"Action: {example}" if name.startswith("ui-tars") else example
        assert format.parse(call, Size(1000, 1000)).action is not None, example
        shown = example.removeprefix('{"type": "computer_call", "action": ').removeprefix(
            '{"type": "tool_use", "name": "computer", "input": '
        )
        assert (shown[:-1] if shown != example else shown) in format.system_prompt


@every
def test_a_prompt_says_what_coordinates_mean(name: str, kind: str) -> None:
    format = family(name, kind)
    told = format.told(Size(1092, 2408))
    assert told.startswith(format.system_prompt)
    assert ("1092" in told and "2408" in told) is format.absolute
    assert ("pixels of the screenshot" in told) is format.absolute


def test_no_two_families_say_the_same() -> None:
    prompts = [family(name, kind).system_prompt for name, kind in BOTH]
    assert len(set(prompts)) == len(prompts)


# --- faults ---------------------------------------------------------------------------------------------------------

openings = st.sampled_from(
    ["", "{", '{"type": "computer_call", "action": ', '{"name": "click", "args": ', "<tool_call>{", "Action: click(",
     "Action: type(content='", '[{"type": "message", "content": ', "Action: drag(start_box='(1,2)', "]
)  # fmt: skip


@every
@given(text=st.builds("{}{}".format, openings, st.text(max_size=60)), strict=st.booleans())
def test_no_answer_raises_and_each_is_an_action_or_an_error(name: str, kind: str, text: str, strict: bool) -> None:
    parsed = family(name, kind).parse(text, SCREEN, strict=strict)
    assert (parsed.action is None) == (parsed.error is not None)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just({"x": 1, "y": 2}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
WORDS = [
    "click",
    "double_click",
    "drag",
    "scroll",
    "type",
    "keypress",
    "wait",
    "move",
    "key",
    "left_click",
    "left_click_drag",
    "long_press",
    "open_app",
    "hotkey",
    "press_key",
    "drag_and_drop",
    "mouse_move",
    "screenshot",
]
FIELDS = [
    "x",
    "y",
    "path",
    "button",
    "keys",
    "key",
    "text",
    "scroll_x",
    "scroll_y",
    "coordinate",
    "start_coordinate",
    "scroll_direction",
    "scroll_amount",
    "duration",
    "direction",
    "magnitude_in_pixels",
    "seconds",
    "start_x",
    "start_y",
    "end_x",
    "end_y",
    "app_name",
    "press_enter",
    "intent",
]
FRAMES = {
    "openai": '{{"type": "computer_call", "action": {}}}',
    "anthropic": '{{"type": "tool_use", "name": "computer", "input": {}}}',
}


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
@given(
    word=st.sampled_from(WORDS),
    fields=st.dictionaries(st.sampled_from(FIELDS), values, max_size=5),
    strict=st.booleans(),
    kind=st.sampled_from(["phone", "desktop"]),
)
def test_any_arguments_give_a_valid_action_or_an_error(
    name: str, word: str, fields: dict[str, Any], strict: bool, kind: str
) -> None:
    if name == "gemini":
        text = json.dumps({"name": word, "args": fields})
    else:
        text = FRAMES[name].format(json.dumps({"type": word, "action": word} | fields))
    parsed = family(name, kind).parse(text, SCREEN, strict=strict)
    assert (parsed.action is None) == (parsed.error is not None)
    if parsed.action is not None:
        assert ACTION.validate_python(parsed.action.model_dump()) == parsed.action
