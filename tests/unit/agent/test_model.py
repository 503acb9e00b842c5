import subprocess
import sys

import anyio
import pytest

from cuarl.agent import formats
from cuarl.agent.base import Decision
from cuarl.agent.model import ModelAgent
from cuarl.agent.prompt import Window
from cuarl.policy.sampler import (
    Message,
    Picture,
    PromptTooLong,
    SampledText,
    SamplerCapabilities,
    SampleRequest,
    SamplingParams,
    Text,
)
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Click, Observation, Wait
from tests.unit.policy.pictures import screen

FORMAT = formats.get("qwen3-vl")
TASK = TaskInstance(task_id="t", goal="turn on wifi")
CLICK = FORMAT.render(Click(x=20, y=10), formats.Size(64, 96))
FENCED = '```json\n{"action": "wait", "time": 1}\n```'


class Recited:
    """A sampler that knows its answers by heart."""

    capabilities = SamplerCapabilities(token_ids=True, logprobs=True, images=True)

    def __init__(self, *replies: Sampled | PromptTooLong) -> None:
        self.replies = list(replies)
        self.requests: list[SampleRequest] = []

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        self.requests.append(request)
        return self.replies.pop(0)

    async def close(self) -> None: ...


def answer(text: str, **changes: object) -> Sampled:
    return Sampled(token_ids=(1, 2), logprobs=(-0.1, -0.2), text=text, **changes)


def act(agent: ModelAgent, *, shot: int = 1, history: tuple[Turn, ...] = (), seed: int = 5) -> Decision:
    return anyio.run(agent.act, TASK, Observation(screen(shot)), history, seed)


def test_an_answer_becomes_an_action_in_pixels_with_its_record() -> None:
    sampler = Recited(answer(CLICK))
    params = SamplingParams(temperature=0.8, max_tokens=9)
    decision = act(ModelAgent(sampler, FORMAT, params=params, window=Window(max_prompt_tokens=77)))
    assert decision == Decision(action=Click(x=20, y=10), resized=(64, 96), sampled=answer(CLICK))
    request = sampler.requests[0]
    assert (request.params, request.seed, request.max_prompt_tokens) == (params, 5, 77)
    system, user = request.messages
    assert system == Message("system", (Text(FORMAT.system_prompt),))
    assert user.parts[1] == Text("turn on wifi")


def test_the_window_shows_earlier_screens_and_answers_with_their_ids() -> None:
    sampler = Recited(answer(CLICK), answer(CLICK))
    agent = ModelAgent(sampler, FORMAT, params=SamplingParams(), window=Window(history_images=2, history_turns=1))
    first = act(agent, shot=1)
    turn = Turn(index=0, screenshot=screen(1).ref, action=first.action, sampled=first.sampled)
    act(agent, shot=2, history=(turn,))
    parts = [p for m in sampler.requests[1].messages[1:] for p in m.parts]
    pictures = [p.screenshot.digest for p in parts if isinstance(p, Picture)]
    assert pictures == [screen(1).digest, screen(2).digest]
    assert [p for p in parts if isinstance(p, SampledText)] == [SampledText(CLICK, (1, 2))]


def test_an_answer_of_an_endpoint_without_ids_is_carried_as_text() -> None:
    sampler = Recited(answer(CLICK, exact=False), answer(CLICK))
    agent = ModelAgent(sampler, FORMAT, params=SamplingParams(), window=Window(history_turns=1))
    turn = Turn(index=0, screenshot=screen(1).ref, sampled=act(agent).sampled)
    act(agent, history=(turn,))
    assert SampledText(CLICK, None) in [p for m in sampler.requests[1].messages for p in m.parts]


def test_training_reads_strictly_and_evaluation_need_not() -> None:
    strict, lenient = (
        act(ModelAgent(Recited(answer(FENCED)), FORMAT, params=SamplingParams(), strict=s)) for s in (True, False)
    )
    assert strict.action is None and strict.parse_error is not None and strict.parse_error.code == "no_call"
    assert lenient.action == Wait() and lenient.warnings
    assert strict.sampled == lenient.sampled == answer(FENCED), "a malformed answer is trained on, too"


@pytest.mark.parametrize(
    ("text", "stop", "code"),
    [
        ("<tool_call>\n{", "length", "truncated"),
        ("see <|image_pad|>", "special_token", "special_token"),
        (CLICK, "special_token", "special_token"),
        ("nothing", "eos", "no_call"),
    ],
)
def test_why_an_answer_is_no_action(text: str, stop: str, code: str) -> None:
    decision = act(ModelAgent(Recited(answer(text, stop=stop)), FORMAT, params=SamplingParams()))
    assert decision.action is None
    assert decision.parse_error is not None and decision.parse_error.code == code


def test_a_whole_call_counts_even_if_the_answer_was_cut_off_behind_it() -> None:
    decision = act(ModelAgent(Recited(answer(CLICK, stop="length")), FORMAT, params=SamplingParams()))
    assert decision.action == Click(x=20, y=10) and decision.parse_error is None


@pytest.mark.parametrize("stop", ["length", "eos"])
def test_nothing_is_made_up_for_an_answer_that_was_cut_off(stop: str) -> None:
    """Brackets that are missing are put back only where the model itself ended its answer."""
    text = CLICK.removesuffix("\n</tool_call>").removesuffix("}")
    agent = ModelAgent(Recited(answer(text, stop=stop)), FORMAT, params=SamplingParams(), strict=False)
    decision = act(agent)
    if stop == "eos":
        assert decision.action == Click(x=20, y=10) and "brackets are missing" in decision.warnings
    else:
        assert decision.action is None and decision.parse_error is not None
        assert decision.parse_error.code == "truncated"


def test_a_prompt_that_does_not_fit_is_passed_on() -> None:
    refused = PromptTooLong(needed=9, limit=5)
    assert act(ModelAgent(Recited(refused), FORMAT, params=SamplingParams())) == Decision(too_long=refused)


def test_agents_and_endpoints_do_not_need_torch() -> None:
    code = (
        "import sys, cuarl.agent.model, cuarl.agent.scripted, cuarl.policy.remote.openai, cuarl.policy.spec; "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- the size at which the model saw the screen -----------------------------------------------------------------------


class Knowing(Recited):
    """A sampler whose model sees everything at one size."""

    async def sees(self, width: int, height: int) -> tuple[int, int]:
        assert (width, height) == (64, 96)
        return 28, 56


PIXELS = formats.get("qwen2.5-vl")
SAID = PIXELS.render(Click(x=32, y=48), formats.Size(64, 96), resized=formats.Size(28, 56))


def test_c13_points_are_pixels_of_the_picture_that_the_samplers_model_saw() -> None:
    assert "[14, 28]" in SAID
    sampler = Knowing(answer(SAID))
    decision = act(ModelAgent(sampler, PIXELS, params=SamplingParams()))
    assert (decision.action, decision.resized) == (Click(x=32, y=48), (28, 56))
    assert sampler.requests[0].messages[0] == Message("system", (Text(PIXELS.told(formats.Size(28, 56))),))


def test_where_the_sampler_does_not_know_the_familys_usual_size_counts_and_is_recorded() -> None:
    decision = act(ModelAgent(Recited(answer(SAID)), PIXELS, params=SamplingParams()))
    seen = PIXELS.seen(formats.Size(64, 96))
    assert decision.resized == seen == (56, 84)
    assert decision.action == PIXELS.parse(SAID, formats.Size(64, 96), resized=seen).action != Click(x=32, y=48)


def test_the_same_answer_read_again_at_the_recorded_size_is_the_same_action() -> None:
    decision = act(ModelAgent(Knowing(answer(SAID)), PIXELS, params=SamplingParams()))
    turn = Turn(index=0, screenshot=screen(1).ref, action=decision.action, resized=decision.resized)
    stored = Turn.model_validate_json(turn.model_dump_json())
    assert stored.resized is not None
    assert PIXELS.parse(SAID, formats.Size(64, 96), resized=formats.Size(*stored.resized)).action == turn.action


def test_a_picture_that_is_shrunk_before_it_is_sent_goes_into_the_record() -> None:
    large = screen(1, 3000, 200)
    sampler = Recited(answer('{"type": "tool_use", "name": "computer", "input": {"action": "screenshot"}}'))
    agent = ModelAgent(sampler, formats.get("anthropic"), params=SamplingParams())
    decision = anyio.run(agent.act, TASK, Observation(large), (), 5)
    sent = next(p.screenshot for m in sampler.requests[0].messages for p in m.parts if isinstance(p, Picture))
    assert (sent.width, sent.height) == decision.resized == (1568, 105)
    assert decision.pictures == {sent.digest: sent}
    assert act(ModelAgent(Recited(answer(CLICK)), FORMAT, params=SamplingParams())).pictures == {}


def test_a_family_has_its_own_history_unless_an_experiment_says_otherwise() -> None:
    tars = formats.get("ui-tars-1.0")
    for window, pictures in ((None, 3), (Window(), 1)):
        sampler = Recited(*[answer("Action: wait()")] * 3)
        agent = ModelAgent(sampler, tars, params=SamplingParams(), window=window)
        history: tuple[Turn, ...] = ()
        for i in range(3):
            decision = act(agent, shot=i + 1, history=history)
            history = (*history, Turn(index=i, screenshot=screen(i + 1).ref, sampled=decision.sampled))
        parts = [p for m in sampler.requests[2].messages for p in m.parts]
        assert sum(isinstance(p, Picture) for p in parts) == pictures
