"""What may never be answered is asked again, ever more rarely, and the first answer counts."""

from __future__ import annotations

import anyio
import pytest

from cuarl.env.browser.asking import ASK_AGAIN_S, first_answer
from cuarl.errors import EnvError

playwright = pytest.importorskip("playwright.async_api", reason="the extra browser is not installed")


class Asked:
    """Answers in turn: a text after so many seconds, or an error; what is asked beyond is never answered."""

    def __init__(self, *answers):
        self.answers, self.count, self.cancelled = answers, 0, 0

    async def __call__(self):
        number, self.count = self.count, self.count + 1
        after_s, answer = self.answers[number] if number < len(self.answers) else (anyio.sleep_forever, None)
        try:
            await (anyio.sleep_forever() if callable(after_s) else anyio.sleep(after_s))
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


NEVER = (anyio.sleep_forever, None)


def answer_of(ask, again=None, within_s=30.0):
    async def work():
        with anyio.fail_after(within_s):
            return await first_answer(ask, again)

    return anyio.run(work)


def test_an_answer_at_once_is_asked_for_once():
    ask = Asked((0, "here"))
    assert (answer_of(ask), ask.count) == ("here", 1)


def test_what_is_never_answered_is_asked_again():
    ask = Asked(NEVER, NEVER, (0, "at last"))
    assert (answer_of(ask), ask.count, ask.cancelled) == ("at last", 3, 2)


def test_a_slow_answer_counts_though_it_was_asked_for_again():
    ask = Asked((3 * ASK_AGAIN_S, "slow"))
    assert answer_of(ask) == "slow"
    assert ask.count > 1


def test_it_may_be_asked_again_in_another_way():
    ask, again = Asked(), Asked(NEVER, (0, "otherwise"))
    assert (answer_of(ask, again), ask.count, again.count) == ("otherwise", 1, 2)


@pytest.mark.parametrize("error", [EnvError("gone"), playwright.Error("crashed")], ids=["env", "playwright"])
@pytest.mark.parametrize("before", [(), (NEVER,)], ids=["at once", "when asked again"])
def test_an_error_is_raised_as_it_is(error, before):
    ask = Asked(*before, (0, error))
    with pytest.raises(type(error)) as caught:
        answer_of(ask)
    assert (caught.value, ask.cancelled) == (error, len(before))


def test_silence_is_asked_more_and_more_rarely_and_its_bound_is_the_callers():
    ask = Asked()
    with pytest.raises(TimeoutError):
        answer_of(ask, within_s=7.5 * ASK_AGAIN_S)
    # after 1, 3 and 7 times that; a busy machine asks late, never early
    assert 2 <= ask.count <= 4
    assert ask.cancelled == ask.count
