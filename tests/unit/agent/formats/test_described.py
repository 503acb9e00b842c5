"""Descriptions in the place of coordinates, and the points that are found for them."""

import json

import anyio
import pytest

from cuarl.agent.formats import Size
from cuarl.agent.formats.described.format import Described
from cuarl.agent.model import ModelAgent
from cuarl.errors import AgentError
from cuarl.policy.sampler import SamplingParams
from cuarl.tasks.task import TaskInstance
from cuarl.types import (
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Observation,
    OpenApp,
    Screenshot,
    Scroll,
    Swipe,
    TypeText,
    Wait,
    placed,
)
from tests.unit.agent.test_model import Recited, answer
from tests.unit.policy.pictures import screen

SCREEN = Size(64, 96)
WIFI = {"element": "switch", "label": "Wi-Fi", "color": "blue", "location": "the top"}
MENU = {"element": "menu"}


def call(kind: str = "phone", **arguments: object) -> str:
    tool = "mobile_use" if kind == "phone" else "computer_use"
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"


@pytest.mark.parametrize(
    ("kind", "arguments", "action", "described"),
    [
        ("phone", {"action": "click", "target": WIFI}, Click(x=0, y=0), ['blue switch labelled "Wi-Fi", at the top']),
        ("phone", {"action": "long_press", "target": MENU, "time": 2}, LongPress(x=0, y=0, duration_ms=2000), ["menu"]),
        ("phone", {"action": "swipe", "target": MENU, "target2": WIFI}, Swipe(x=0, y=0, x2=0, y2=0),
         ["menu", 'blue switch labelled "Wi-Fi", at the top']),
        ("phone", {"action": "scroll", "direction": "down"}, Scroll(direction="down", amount=48), []),
        ("phone", {"action": "scroll", "direction": "up", "target": MENU}, Scroll(x=0, y=0, direction="up", amount=48),
            ["menu"]),
        ("desktop", {"action": "double_click", "target": MENU}, Click(x=0, y=0, count=2), ["menu"]),
        ("desktop", {"action": "left_click_drag", "target": MENU, "target2": MENU}, Drag(path=((0, 0), (0, 0))),
            ["menu", "menu"]),
        ("desktop", {"action": "scroll", "pixels": -90, "target": MENU}, Scroll(x=0, y=0, direction="down", amount=90),
            ["menu"]),
    ],
)  # fmt: skip
def test_a_target_is_put_into_words_and_its_point_left_open(kind, arguments, action, described) -> None:
    parsed = Described(kind).parse(call(kind, **arguments), SCREEN)
    assert parsed.error is None, parsed.error
    assert (parsed.action, list(parsed.described)) == (action, described)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"action": "click", "coordinate": [1, 2]}, "bad_argument"),
        ({"action": "click"}, "missing_argument"),
        ({"action": "click", "target": {"label": "Wi-Fi"}}, "missing_argument"),
        ({"action": "click", "target": "the switch"}, "bad_argument"),
        ({"action": "click", "target": {"element": "switch", "mood": "good"}}, "bad_argument"),
        ({"action": "click", "target": {"element": 3}}, "bad_argument"),
        ({"action": "type", "text": "a", "target": MENU}, "bad_argument"),
        ({"action": "scroll", "direction": "along"}, "bad_argument"),
        ({"action": "left_click", "target": MENU}, "unsupported_on_device"),
    ],
)
def test_what_is_no_description_is_an_error(arguments: dict[str, object], code: str) -> None:
    parsed = Described().parse(call(**arguments), SCREEN)
    assert parsed.action is None and parsed.error is not None and parsed.error.code == code


def test_evaluation_takes_a_plain_text_for_a_description_and_says_so() -> None:
    parsed = Described().parse(call(action="click", target="the switch"), SCREEN, strict=False)
    assert parsed.described == ("the switch",) and parsed.warnings


@pytest.mark.parametrize(
    "action",
    [
        Answer(text="a"),
        Button(name="back"),
        Finish(success=False),
        Key(keys=("a",)),
        OpenApp(name="Maps"),
        TypeText(text="x"),
        Wait(seconds=2),
    ],
)
def test_what_has_no_point_survives_writing_and_reading(action) -> None:
    assert Described().parse(Described().render(action, SCREEN), SCREEN).action == action


def test_a_point_has_no_words() -> None:
    with pytest.raises(AgentError, match="targets are described"):
        Described().render(Click(x=1, y=2), SCREEN)


@pytest.mark.parametrize("kind", ["phone", "desktop"])
def test_the_prompt_speaks_of_targets_and_shows_an_answer_that_is_read(kind) -> None:
    prompt = Described(kind).system_prompt
    assert '"target2"' in prompt and "coordinate" not in prompt
    example = prompt[prompt.rindex("<tool_call>") :]
    assert Described(kind).parse(example, SCREEN).described == ('switch labelled "Wi-Fi"',)


def test_points_go_where_an_action_has_them() -> None:
    ends = [(1, 2), (3, 4)]
    assert placed(Swipe(x=0, y=0, x2=0, y2=0), ends) == Swipe(x=1, y=2, x2=3, y2=4)
    assert placed(Drag(path=((0, 0), (0, 0))), ends) == Drag(path=((1, 2), (3, 4)))
    assert placed(Scroll(x=0, y=0, direction="up"), ends[:1]) == Scroll(x=1, y=2, direction="up")


class Knows:
    """Finds one thing, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def point(self, screenshot: Screenshot, target: str) -> tuple[int, int] | None:
        self.asked.append((screenshot.digest, target))
        return (20, 30) if target == "menu" else None


def test_the_agent_acts_where_the_pointer_says_and_errs_where_it_finds_nothing() -> None:
    pointer, shown = Knows(), screen(1)

    def decide(text: str):
        agent = ModelAgent(Recited(answer(text)), Described(), params=SamplingParams(), pointer=pointer)
        return anyio.run(agent.act, TaskInstance(task_id="t", goal="g"), Observation(shown), (), 1)

    assert decide(call(action="click", target=MENU)).action == Click(x=20, y=30)
    lost = decide(call(action="swipe", target=MENU, target2=WIFI))
    assert lost.action is None and lost.parse_error is not None and lost.parse_error.code == "not_found"
    assert "Wi-Fi" in lost.parse_error.message
    assert decide(call(action="wait", time=1)).action == Wait(seconds=1)
    assert [digest for digest, _ in pointer.asked] == [shown.digest] * 3
