"""Cases that users of UI-TARS met, and what the strict reading lets pass."""

import pytest

from cuarl.agent import formats
from cuarl.agent.formats import ParsedAction, Size
from cuarl.types import Action, Button, Click, Finish, Key, LongPress, OpenApp, Scroll, Swipe, TypeText, Wait

PHONE, DESKTOP = formats.get("ui-tars-1.0"), formats.get("ui-tars-1.0", "desktop")
V15 = formats.get("ui-tars-1.5", "desktop")
THOUSAND = Size(1000, 1000)


def test_points_are_written_as_each_release_writes_them() -> None:
    click = Click(x=512, y=233)
    assert DESKTOP.render(click, THOUSAND) == "Action: click(start_box='(512,233)')"
    seen = "Action: click(point='<point>512 233</point>')"
    assert V15.render(click, THOUSAND, resized=THOUSAND) == seen


@pytest.mark.parametrize(
    ("text", "screen", "pixel"),
    [
        (
            "Thought: The save icon is in the toolbar.\nAction: click(start_box='[40, 900, 60, 940]')",
            (1920, 1080),
            (96, 994),
        ),
        ("Action: click(start_box='<|box_start|>(50,920)<|box_end|>')", (1920, 1080), (96, 994)),
    ],
)
def test_c01_a_box_means_its_centre(text: str, screen: tuple[int, int], pixel: tuple[int, int]) -> None:
    assert DESKTOP.parse(text, Size(*screen), strict=False).action == Click(x=pixel[0], y=pixel[1])


def test_c01_a_box_in_pixels_means_its_centre() -> None:
    text = "Thought: The search field is wide.\nAction: click(start_box='[200, 300, 600, 340]')"
    screen = Size(1366, 768)
    parsed = V15.parse(text, screen, resized=screen, strict=False)
    assert parsed.action == Click(x=400, y=320) and any("box" in w for w in parsed.warnings)
    assert V15.parse(text, screen, resized=screen).error is not None


MUDDLED = [
    "Action: click(point='<point>250 640</point>\")",
    "Action: click(point='<point>250 640</point>)",
    "Action: click(point='<point>250 640</point>'",
    "Action: click(point='<point>250, 640</point>')",
]


@pytest.mark.parametrize("text", MUDDLED)
def test_c03_unbalanced_quotes_are_repaired_with_a_warning_in_evaluation_alone(text: str) -> None:
    lenient = DESKTOP.parse(text, Size(1000, 2000), strict=False)
    assert lenient.action == Click(x=250, y=1280) and lenient.warnings
    assert DESKTOP.parse(text, Size(1000, 2000)).error is not None


@pytest.mark.parametrize("strict", [True, False])
def test_c03_a_point_as_it_should_be_needs_no_warning(strict: bool) -> None:
    text = "Action: click(point='<point>250 640</point>')"
    assert DESKTOP.parse(text, Size(1000, 2000), strict=strict) == ParsedAction(action=Click(x=250, y=1280))


TYPED = [
    (
        r"Action: type(content='It\'s point=3 (draft)\n\nAction: call the lab at 5')",
        TypeText(text="It's point=3 (draft)\n\nAction: call the lab at 5"),
    ),
    (r"Action: type(content='scan\n')", TypeText(text="scan", submit=True)),
    (r"Action: type(content='C:\\new\\table')", TypeText(text="C:\\new\\table")),
    (
        r"Thought: 任务已经完成。" + "\n" + r"Action: finished(content='已将“深色模式”打开：\n1) 设置\n2) 显示')",
        Finish(message="已将“深色模式”打开：\n1) 设置\n2) 显示"),
    ),
]


@pytest.mark.parametrize(("text", "action"), TYPED)
@pytest.mark.parametrize("strict", [True, False])
def test_c05_texts_are_read_as_they_were_written(text: str, action: Action, strict: bool) -> None:
    assert DESKTOP.parse(text, THOUSAND, strict=strict) == ParsedAction(action=action)


def test_c05_a_bare_apostrophe_is_repaired_in_evaluation() -> None:
    text = "Action: type(content='It's fine')"
    assert DESKTOP.parse(text, THOUSAND, strict=False).action == TypeText(text="It's fine")
    assert DESKTOP.parse(text, THOUSAND).error is not None


def test_c06_a_scroll_keeps_its_distance_and_refuses_a_direction_that_is_none() -> None:
    text = "Action: scroll(point='<point>500 500</point>', direction='down', amount=200)"
    assert DESKTOP.parse(text, THOUSAND).action == Scroll(x=500, y=500, direction="down", amount=200)
    wrong = DESKTOP.parse("Action: scroll(start_box='(500,500)', direction='sideways')", THOUSAND, strict=False)
    assert wrong.error is not None and wrong.error.code == "bad_argument"


def test_a_phones_scroll_slides_the_finger_the_other_way() -> None:
    parsed = PHONE.parse("Action: scroll(start_box='(500,500)', direction='down')", THOUSAND)
    assert parsed.action == Swipe(x=500, y=500, x2=500, y2=0)


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        (DESKTOP, "Action: left_double(start_box='(500,500)')", Click(x=500, y=500, count=2)),
        (DESKTOP, "Action: right_single(start_box='(500,500)')", Click(x=500, y=500, button="right")),
        (PHONE, "Action: long_press(start_box='(500,500)')", LongPress(x=500, y=500)),
        (DESKTOP, "Action: long_press(start_box='(500,500)')", "unsupported_on_device"),
        (DESKTOP, "Action: teleport(start_box='(1,1)')", "unsupported_action"),
    ],
)
def test_c09_a_verb_is_understood_or_named(format: formats.Format, text: str, expected: Action | str) -> None:
    parsed = format.parse(text, THOUSAND)
    assert (parsed.error.code if parsed.error else parsed.action) == expected
    if parsed.error and parsed.error.code == "unsupported_action":
        assert "teleport" in parsed.error.message


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("press_home()", Button(name="home")),
        ("press_back()", Button(name="back")),
        ("open_app(app_name='Clock')", OpenApp(name="Clock")),
        ("wait()", Wait(seconds=5)),
        ("call_user()", Finish(success=False)),
        ("long_press(start_box='(5,6)', time='2')", LongPress(x=5, y=6, duration_ms=2000)),
    ],
)
def test_a_phones_verbs(text: str, action: Action) -> None:
    assert PHONE.parse(f"Action: {text}", THOUSAND) == ParsedAction(action=action)


def test_a_hotkey_names_keys_with_blanks_between() -> None:
    assert DESKTOP.parse("Action: hotkey(key='ctrl c')", THOUSAND).action == Key(keys=("ctrl", "c"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("click(start_box='(1,1)')", "no_call"),
        ("Action: the icon", "no_call"),
        ("Action: click()", "missing_argument"),
        ("Action: click(start_box='(1)')", "bad_argument"),
        ("Action: click(start_box='(1480,300)')", "out_of_range"),
        ("Action: click(start_box='(1,1)', start_box='(2,2)')", "bad_argument"),
        ("Action: click(start_box='(1,1)')\n\nAction: wait()", "bad_argument"),
        ("Action: click(start_box='(1,1)' end)", "bad_argument"),
        (r"Action: type(content='C:\Users')", "bad_argument"),
        ("Action: hotkey(key='')", "bad_argument"),
        ("Action: scroll(direction='down', amount=-3)", "bad_argument"),
    ],
)
def test_faults_have_codes(text: str, code: str) -> None:
    parsed = DESKTOP.parse(text, THOUSAND)
    assert parsed.error is not None and parsed.error.code == code


def test_of_two_actions_the_first_counts_in_evaluation() -> None:
    parsed = DESKTOP.parse("Action: click(start_box='(1,1)')\n\nAction: wait()", THOUSAND, strict=False)
    assert parsed.action == Click(x=1, y=1) and any("more text" in w for w in parsed.warnings)
