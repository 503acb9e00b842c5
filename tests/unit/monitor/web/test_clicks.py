"""What a person wants to find is at most four clicks from the start page, each on a link that is really there."""

import re
from html import unescape

import pytest

from cuarl.store import EvaluationRecord
from cuarl.types import Failure, StopReason
from tests.unit.monitor.web.conftest import asking
from tests.unit.monitor.web.made import PICTURE, episode, task
from tests.unit.store.samples import run

pytestmark = pytest.mark.anyio
TASKS = ("wifi_on", "dark_mode")
FELL_AT = 20


class Person:
    """Clicks on links by their words, or by where they lead to, and counts clicks and the pages that it sees."""

    def __init__(self, client):
        self._client, self.clicks, self.pages, self.text = client, -1, [], '<a href="/">start</a>'

    async def click(self, words):
        links = re.findall(r'<a\b[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', self.text, re.DOTALL)
        found = [unescape(to) for to, inner in links if words in re.sub("<[^>]+>", "", inner) or words in unescape(to)]
        assert found, f"no link like {words!r}"
        answer = await self._client.get(found[0])
        assert answer.status_code == 200
        self.text, self.clicks = answer.text, self.clicks + 1
        self.pages.append(found[0])


@pytest.fixture
async def person(store):
    """At the start page of a monitor with other runs and a training of 22 steps, in which devices were lost at one."""
    store.blobs.put([PICTURE])
    store.save_tasks([task(name) for name in TASKS])
    for number in range(30):
        store.start_run(run(f"other-{number}", name=f"other-{number}", started_at=1e9 + number))
    store.start_run(run("seeded", name="seeded", started_at=2e9))
    for step in range(1, 23):
        fell = step == FELL_AT
        lost = {"stop": StopReason.FAILED, "failure": Failure(boundary="env", kind="EnvError", message="box gone")}
        values = {"episode/success_rate": 0.25 if fell else 0.75, "reward/mean": 0.5, "episode/failed_rate": 0.5 * fell}
        store.log_metrics("seeded", step, values)
        for group, name in enumerate(TASKS):
            one = episode("seeded", step, group, 0, name, success=step % 2 == group)
            two = episode("seeded", step, group, 1, name, success=True)
            store.enqueue(one if not fell else one.model_copy(update={**lost, "verdict": None, "reward": None}))
            store.enqueue(two)
    for step in (0, 22):
        tried = [
            episode("seeded", step, 10 + i, 0, name, purpose="eval", success=step > i) for i, name in enumerate(TASKS)
        ]
        for one in tried:
            store.enqueue(one)
        record = EvaluationRecord(
            id=f"seeded.eval.{step}",
            run_id="seeded",
            suite="settings",
            step=step,
            metrics={"success_rate": float(step > 0)},
        )
        store.save_evaluation(record, [one.episode_id for one in tried])
    store.drain()
    async with asking(store) as client:
        made = Person(client)
        await made.click("start")
        yield made


async def test_why_success_fell_at_step_20(person):
    await person.click("seeded")
    cells = re.findall(r'>step (\d+)</a>.*?<td class="num">([\d.]+) %', person.text, re.DOTALL)
    lowest, _ = min(cells, key=lambda cell: float(cell[1]))
    assert lowest == str(FELL_AT), "the timeline shows where"
    await person.click(f"step {lowest}")
    await person.click("no verdict")
    assert "env failed: EnvError: box gone" in person.text
    assert (person.clicks, len(person.pages)) == (3, 4)


async def test_the_worst_episode_of_a_task(person):
    for words in ("seeded", "dark_mode", "/episodes/seeded"):
        await person.click(words)
    assert "<h1>dark_mode</h1>" in person.text and "reward <b>0</b>" in person.text
    assert (person.clicks, len(person.pages)) == (3, 4)


async def test_the_trained_policy_beside_the_untrained_on_one_instance(person):
    for words in ("seeded", "/evaluations/seeded.eval.22", "side by side", "x=seeded.0"):
        await person.click(words)
    assert person.text.count('<div class="large">') == 2
    assert (person.clicks, len(person.pages)) == (4, 5)


async def test_a_verdict_to_overrule(person):
    for words in ("seeded", "step 22", "success"):
        await person.click(words)
    assert 'data-success="false"' in person.text
    assert (person.clicks + 1, len(person.pages)) == (4, 4), "with the click on the button"
