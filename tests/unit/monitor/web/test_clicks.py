"""What a person wants to find is at most four clicks from the start page, each on a link that is really there."""

import re
from html import unescape

import pytest

from tests.unit.monitor.web.conftest import asking, fill

pytestmark = pytest.mark.anyio


class Person:
    """Clicks on links by their words, or by where they lead to, and counts."""

    def __init__(self, client):
        self._client, self.clicks, self.text = client, -1, '<a href="/">start</a>'

    async def click(self, words):
        links = re.findall(r'<a\b[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', self.text, re.DOTALL)
        found = [unescape(to) for to, inner in links if words in re.sub("<[^>]+>", "", inner) or words in unescape(to)]
        assert found, f"no link like {words!r}"
        answer = await self._client.get(found[0])
        assert answer.status_code == 200
        self.text, self.clicks = answer.text, self.clicks + 1


@pytest.fixture
async def person(store):
    fill(store)
    async with asking(store) as client:
        made = Person(client)
        await made.click("start")
        yield made


async def test_why_success_fell_at_a_step(person):
    for words in ("better", "step 2", "better.2.1.1"):
        await person.click(words)
    assert "env failed: EnvError: gone" in person.text and person.clicks <= 4


async def test_the_worst_episode_of_a_run(person):
    for words in ("base", "Worst episodes", "/episodes/base"):
        await person.click(words)
    assert "failure" in person.text and person.clicks <= 4


async def test_the_trained_policy_beside_the_untrained_on_one_instance(person):
    for words in ("better", "/evaluations/better.eval.2", "side by side", "x=better.0"):
        await person.click(words)
    assert person.text.count('<div class="large">') == 2 and person.clicks <= 4


async def test_a_verdict_to_overrule(person):
    for words in ("base", "step 1", "base.1.1.1"):
        await person.click(words)
    assert 'data-success="false"' in person.text and person.clicks + 1 <= 4
