import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.types import Action, Answer, Click, Finish, Key, Swipe, TypeText, Wait

SCREEN = Size(1000, 1000)
SIDE = st.integers(0, 999)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).filter(lambda t: not t.endswith("\n"))
SHARED = st.builds(TypeText, text=TEXT, submit=st.booleans()) | st.builds(Answer, text=TEXT) | st.just(Wait(seconds=2))
PHONE = SHARED | st.builds(Click, x=SIDE, y=SIDE) | st.builds(Swipe, x=SIDE, y=SIDE, x2=SIDE, y2=SIDE)
DESKTOP = (
    SHARED | st.builds(Click, x=SIDE, y=SIDE, button=st.sampled_from(["left", "right"])) | st.just(Key(keys=("a",)))
)


@given(PHONE)
def test_a_phones_action_survives_writing_and_reading(action: Action) -> None:
    format = formats.get("json")
    assert format.parse(format.render(action, SCREEN), SCREEN).action == action


@given(DESKTOP)
def test_a_desktops_action_survives_writing_and_reading(action: Action) -> None:
    format = formats.get("json", "desktop")
    assert format.parse(format.render(action, SCREEN), SCREEN).action == action


def test_text_around_the_object_is_an_error_in_training_and_recorded_in_evaluation() -> None:
    format, text = formats.get("json"), 'Sure: {"action": "terminate", "status": "success"}'
    strict = format.parse(text, SCREEN)
    assert strict.error is not None and strict.error.code == "bad_json"
    lenient = format.parse(text, SCREEN, strict=False)
    assert lenient.action == Finish() and lenient.warnings


@pytest.mark.parametrize(("text", "code"), [("", "no_call"), ('{"action"', "bad_json"), ('{"time": NaN}', "bad_json")])
def test_what_is_no_object_is_an_error(text: str, code: str) -> None:
    parsed = formats.get("json").parse(text, SCREEN)
    assert parsed.error is not None and parsed.error.code == code


@given(st.integers(0, 1079), st.integers(0, 2399))
def test_on_a_tall_screen_a_point_is_met_within_half_a_thousandth_of_the_side(x: int, y: int) -> None:
    format, screen = formats.get("json"), Size(1080, 2400)
    action = format.parse(format.render(Click(x=x, y=y), screen), screen).action
    assert isinstance(action, Click)
    assert abs(action.x - x) <= 1080 / 2000 + 0.5 and abs(action.y - y) <= 2400 / 2000 + 0.5
