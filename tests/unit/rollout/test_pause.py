"""Answers that an episode got before it was interrupted, given again."""

import anyio
import pytest

from cuarl.errors import EnvError
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampleRequest, SamplingParams
from cuarl.rollout.pause import CURRENT, Pause, PauseGate, RecallingSampler
from cuarl.trajectory import Sampled
from tests.unit.policy.pictures import screen

SCREENS = [screen(i, 8, 8) for i in range(4)]


def asked(*numbers, limit=None):
    """What is answered where turn 0 was answered to a prompt with screens 1 and 2."""
    known = Sampled(token_ids=(1,), logprobs=(-1.0,), images=(SCREENS[1].ref, SCREENS[2].ref))
    request = SampleRequest(
        (Message("user", tuple(Picture(SCREENS[i]) for i in numbers)),), SamplingParams(), 0, max_prompt_tokens=limit
    )

    async def work():
        CURRENT.set(Pause([known]))
        return await RecallingSampler(None, PauseGate()).sample(request)

    return anyio.run(work)


def test_an_answer_is_given_again_to_the_same_prompt():
    assert asked(1, 2).token_ids == (1,)


def test_a_wider_prompt_is_refused_as_it_was():
    assert asked(0, 1, 2, limit=9) == PromptTooLong(needed=10, limit=9)
    assert asked(1, 2, limit=9).token_ids == (1,)


@pytest.mark.parametrize(("numbers", "limit"), [((0, 1, 2), None), ((1, 3), 9), ((0, 2, 1), 9), ((2,), 9), ((), 9)])
def test_other_screens_are_no_repetition(numbers, limit):
    with pytest.raises(EnvError, match="did not show the same again"):
        asked(*numbers, limit=limit)
