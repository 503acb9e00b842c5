from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest

from cuarl.agent import formats
from cuarl.agent.base import Agent, Decision
from cuarl.agent.scripted import DemonstratingAgent, DoNothingAgent, OracleAgent, RandomAgent
from cuarl.agent.wording import Wording
from cuarl.env.base import Capabilities
from cuarl.errors import AgentError
from cuarl.policy.sampler import Message
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import (
    ACTION,
    Action,
    Answer,
    Click,
    Finish,
    Observation,
    Scroll,
    StepResult,
    Swipe,
    TypeText,
)
from tests.unit.policy.pictures import screen

TASK = TaskInstance(task_id="t", goal="turn on wifi")
SEEN = Observation(screen(1))
EVERY_KIND = frozenset(
    ["click", "long_press", "move", "swipe", "drag", "scroll", "type", "key", "button", "open_app", "wait", "answer",
        "finish"]
)  # fmt: skip


def act(agent: Agent, seed: int = 0, history: tuple[Turn, ...] = ()) -> Decision:
    return anyio.run(agent.act, TASK, SEEN, history, seed)


class Device:
    """An environment that knows one thing to do."""

    def __init__(self, oracle: bool) -> None:
        self.capabilities = Capabilities(frozenset({"click"}), oracle=oracle)

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        return SEEN

    async def step(self, action: Action) -> StepResult:
        return StepResult(SEEN)

    async def state(self) -> Mapping[str, Any]:
        return {}

    async def close(self) -> None: ...

    def oracle_action(self) -> Action:
        return Click(x=3, y=4)


def test_the_oracle_does_what_the_environment_knows() -> None:
    assert act(OracleAgent(Device(oracle=True))).action == Click(x=3, y=4)
    with pytest.raises(AgentError, match="does not know"):
        OracleAgent(Device(oracle=False))


def test_doing_nothing_ends_at_once_and_claims_nothing() -> None:
    assert act(DoNothingAgent()) == Decision(action=Finish(success=False))


def test_a_random_agent_depends_on_its_seed_alone_and_does_what_the_device_can() -> None:
    agent, again = RandomAgent(EVERY_KIND), RandomAgent(EVERY_KIND)
    actions = [act(agent, seed).action for seed in range(300)]
    assert [act(again, seed).action for seed in range(300)] == actions
    kinds = {a.kind for a in actions if a is not None}
    assert kinds == EVERY_KIND - {"finish"}
    for action in actions:
        assert ACTION.validate_python(action) == action
        for name, bound in (("x", 64), ("x2", 64), ("y", 96), ("y2", 96)):
            assert (getattr(action, name, None) or 0) < bound
    assert {act(RandomAgent(frozenset({"click", "finish"})), s).action.kind for s in range(20)} == {"click"}  # type: ignore[union-attr]


def test_a_random_agent_needs_something_to_draw_from() -> None:
    with pytest.raises(AgentError, match="no action to draw from"):
        RandomAgent(frozenset({"finish"}))


def _teacher(action: Action) -> Agent:
    class Teacher:
        name = "teacher"

        async def act(self, *_: object) -> Decision:
            return Decision(action=action)

    return Teacher()


def _writer(log: list[str]) -> Callable[[tuple[Message, ...], str, int | None], Sampled]:
    def write(messages: tuple[Message, ...], text: str, max_tokens: int | None) -> Sampled:
        log.append(text)
        return Sampled(prompt_ids=(1,), token_ids=(2,), text=text)

    return write


def test_a_demonstration_says_the_teachers_action_in_the_models_words() -> None:
    fmt, said = formats.get("qwen3-vl"), list[str]()
    agent = DemonstratingAgent(_teacher(TypeText(text="hi", submit=True)), Wording(fmt, _writer(said)))
    decision = act(agent)
    assert agent.name == "teacher:qwen3-vl-mobile"
    assert decision.action == TypeText(text="hi", submit=True)
    assert said == [fmt.render(TypeText(text="hi", submit=True), formats.Size(64, 96))]
    assert decision.sampled == Sampled(prompt_ids=(1,), token_ids=(2,), text=said[0])


def test_what_the_words_cannot_say_is_not_demonstrated() -> None:
    agent = DemonstratingAgent(_teacher(Scroll(direction="up")), Wording(formats.get("qwen3-vl"), _writer([])))
    with pytest.raises(AgentError, match="no word"):
        act(agent)


def test_a_demonstration_is_written_and_read_at_the_size_at_which_the_model_sees() -> None:
    fmt, said = formats.get("qwen2.5-vl"), list[str]()
    agent = DemonstratingAgent(_teacher(Click(x=32, y=48)), Wording(fmt, _writer(said), resize=lambda w, h: (28, 56)))
    decision = act(agent)
    assert (decision.action, decision.resized) == (Click(x=32, y=48), (28, 56))
    assert "[14, 28]" in said[0]


def test_a_scroll_is_demonstrated_on_a_phone_as_the_slide_of_a_finger() -> None:
    agent = DemonstratingAgent(
        _teacher(Scroll(x=30, y=60, direction="down", amount=20)), Wording(formats.get("qwen3-vl"), _writer([]))
    )
    assert act(agent).action == Swipe(x=30, y=60, x2=30, y2=40)


def test_an_answer_is_demonstrated_by_finishing_with_it_where_there_is_no_other_word() -> None:
    for name, said in (("ui-tars-1.0", Finish(message="16 C")), ("qwen3-vl", Answer(text="16 C"))):
        agent = DemonstratingAgent(_teacher(Answer(text="16 C")), Wording(formats.get(name), _writer([])))
        assert act(agent).action == said
