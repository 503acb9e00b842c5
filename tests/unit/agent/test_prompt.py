import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent.prompt import Shown, Window, build_messages
from cuarl.policy.sampler import Message, Picture, SampledText, Text
from tests.unit.policy.pictures import screen

SCREENS = [screen(i, 8, 8) for i in range(4)]
ANSWERS = [SampledText(f"answer {i}", (i,)) for i in range(3)]


def shown(images: int, turns: int, past: int = 3, older: str = "text") -> list[tuple[str, list[object]]]:
    """The conversation without its system message: pictures by their number, texts as they are."""
    window = Window(history_images=images, history_turns=turns).but(history_older=older)
    return conversation(window.widest(past), past)


def conversation(what: Shown, past: int = 3) -> list[tuple[str, list[object]]]:
    messages = build_messages("the goal", SCREENS[: past + 1], ANSWERS[:past], system="sys", shown=what)
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
        ("user", [0, "the goal"]),
        ("assistant", ["answer 0"]),
        ("user", [1]),
        ("assistant", ["answer 1"]),
        ("user", [2]),
        ("assistant", ["answer 2"]),
        ("user", [3]),
    ]


def test_older_turns_are_left_out_whole() -> None:
    assert shown(2, 1) == [("user", [2, "the goal"]), ("assistant", ["answer 2"]), ("user", [3])]
    assert shown(3, 1) == [("user", [1, 2, "the goal"]), ("assistant", ["answer 2"]), ("user", [3])]


def test_a_screen_out_of_the_window_is_named_where_its_answer_is_shown() -> None:
    assert shown(1, 2) == [
        ("user", ["the goal"]),
        ("assistant", ["answer 1"]),
        ("user", ["(earlier screen)"]),
        ("assistant", ["answer 2"]),
        ("user", [3]),
    ]


def test_an_answer_without_its_screen_is_refused() -> None:
    with pytest.raises(ValueError, match="3 answers need 4 screens, not 3"):
        build_messages("g", SCREENS[:3], ANSWERS, system="s", shown=Shown(0, 0))


def test_an_answer_can_go_with_its_screen() -> None:
    assert shown(1, 2, older="drop") == [("user", [3, "the goal"])]
    assert shown(2, 9, older="drop") == [("user", [2, "the goal"]), ("assistant", ["answer 2"]), ("user", [3])]
    assert shown(3, 1, older="drop") == shown(3, 1), "screens without their answers stay"


@pytest.mark.parametrize(
    ("older", "steps"),
    [
        ("text", [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)]),
        ("drop", [(1, 1), (2, 2), (3, 3)]),
    ],
)
def test_a_budget_takes_the_oldest_first_and_no_turn_apart(older: str, steps: list[tuple[int, int]]) -> None:
    window = Window(history_images=3, history_turns=3).but(history_older=older)
    assert list(window.narrowing(3)) == [Shown(*steps[0])], "without a budget there is nothing to choose"
    assert list(window.but(max_prompt_tokens=1).narrowing(3)) == [Shown(*s) for s in steps]
    assert conversation(Shown(*steps[-1])) == [("user", [3, "the goal"])]


@given(st.integers(1, 6), st.integers(0, 6), st.sampled_from(["text", "drop"]), st.integers(0, 6))
def test_each_narrower_prompt_is_shorter_and_holds_the_goal_and_the_present_screen(
    images: int, turns: int, older: str, past: int
) -> None:
    window = Window(history_images=images, history_turns=turns, max_prompt_tokens=1).but(history_older=older)
    screens, answers = [screen(i, 8, 8) for i in range(past + 1)], [SampledText(str(i)) for i in range(past)]
    sizes = []
    for what in window.narrowing(past):
        parts = [p for m in build_messages("goal", screens, answers, system="s", shown=what)[1:] for p in m.parts]
        pictures = [p.screenshot for p in parts if isinstance(p, Picture)]
        assert pictures == screens[len(screens) - len(pictures) :] and 1 <= len(pictures) <= images
        kept = [p.text for p in parts if isinstance(p, SampledText)]
        assert kept == [str(i) for i in range(past - len(kept), past)] and len(kept) <= turns
        assert Text("goal") in parts
        assert older == "text" or not kept or Text("(earlier screen)") not in parts
        sizes.append((len(pictures), len(kept)))
    assert sizes[-1] == (1, 0)
    assert all(a[0] + a[1] > b[0] + b[1] for a, b in itertools.pairwise(sizes))
