import pytest

from cuarl.agent.prompt import Window, build_messages
from cuarl.policy.sampler import Message, Picture, SampledText, Text
from tests.unit.policy.pictures import screen

SCREENS = [screen(i, 8, 8) for i in range(4)]
ANSWERS = [SampledText(f"answer {i}", (i,)) for i in range(3)]


def shown(images: int, turns: int, past: int = 3) -> list[tuple[str, list[object]]]:
    """The conversation without its system message: pictures by their number, texts as they are."""
    window = Window(history_images=images, history_turns=turns)
    messages = build_messages("the goal", SCREENS[: past + 1], ANSWERS[:past], system="sys", window=window)
    assert messages[0] == Message("system", (Text("sys"),))
    return [(m.role, [_short(p) for p in m.parts]) for m in messages[1:]]


def _short(part: Picture | Text | SampledText) -> object:
    match part:
        case Picture(screenshot):
            return SCREENS.index(screenshot)
        case SampledText(text, ids):
            assert ids is not None, "answers keep their ids"
            return text
        case Text(text):
            return text


@pytest.mark.parametrize("past", range(4))
def test_the_usual_window_shows_the_present_screen_and_the_goal(past: int) -> None:
    assert shown(1, 0, past) == [("user", [past, "the goal"])]


def test_earlier_screens_come_first() -> None:
    assert shown(3, 0) == [("user", [1, 2, 3, "the goal"])]
    assert shown(9, 0, past=1) == [("user", [0, 1, "the goal"])]


def test_earlier_answers_stand_between_their_screens() -> None:
    assert shown(9, 9) == [
        ("user", [0, "the goal"]), ("assistant", ["answer 0"]),
        ("user", [1]), ("assistant", ["answer 1"]),
        ("user", [2]), ("assistant", ["answer 2"]),
        ("user", [3]),
    ]  # fmt: skip


def test_older_turns_are_left_out_whole() -> None:
    assert shown(2, 1) == [("user", [2, "the goal"]), ("assistant", ["answer 2"]), ("user", [3])]
    assert shown(3, 1) == [("user", [1, 2, "the goal"]), ("assistant", ["answer 2"]), ("user", [3])]


def test_a_screen_out_of_the_window_is_named_where_its_answer_is_shown() -> None:
    assert shown(1, 2) == [
        ("user", ["the goal"]), ("assistant", ["answer 1"]),
        ("user", ["(earlier screen)"]), ("assistant", ["answer 2"]),
        ("user", [3]),
    ]  # fmt: skip


def test_an_answer_without_its_screen_is_refused() -> None:
    with pytest.raises(ValueError, match="3 answers need 4 screens, not 3"):
        build_messages("g", SCREENS[:3], ANSWERS, system="s", window=Window())
