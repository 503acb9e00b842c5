"""Boxes that are hard to get: refusals are waited out, a box whose answer was lost is adopted, and all of it has one
bound."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env import http
from cuarl.env.gbox.client import GBox
from cuarl.env.gbox.env import GBoxEnv
from cuarl.env.gbox.options import Options as BoxOptions
from cuarl.env.leases import Ledger
from cuarl.errors import EnvError
from cuarl.local.faults import Faults
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button
from cuarl.web.refusal import Refusal
from tests.fakes.gbox_server import KEY, serving
from tests.integration.faults import Acting, failed_in_env, roll_out, went_well

pytestmark = pytest.mark.integration
PHONE = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))


@dataclass
class Replies(Faults):
    """Answers requests for a box by ``statuses`` in turn (504 once the box is made), and well when they are used up."""

    statuses: list[int] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)

    def around(self, handle):
        if handle.__name__ != "_create":
            return handle

        async def answer(request):
            self.asked_at.append(time.monotonic())
            status = self.statuses.pop(0) if self.statuses else 200
            if status == 429:
                headers = {"Retry-After": f"{self.retry_after_s:g}"}
                raise Refusal("too many requests", status=status, headers=headers)
            if status in (200, 504):
                reply = await handle(request)
            if status != 200:
                raise Refusal("an error of the gateway", status=status)
            return reply

        return answer


def with_boxes(faults, work, folder):
    """Has work done with a server of these faults, and sees to it that no box and no lease is left."""

    async def play(fake, url):
        boxes, ledger = GBox(url, KEY), Ledger(folder)
        try:
            await work(fake, boxes, ledger)
        finally:
            await boxes.close()
        assert ledger.leases() == []

    with serving(faults) as (fake, url):
        anyio.run(play, fake, url)
        assert fake.counts()["live"] == 0
        return fake


def new(boxes, ledger, starting=None, start_s=60.0):
    return GBoxEnv(boxes, ledger, "phone", BoxOptions(settle_ms=10, start_seconds=start_s), starting=starting)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_c40_a_refusal_is_waited_out_with_a_spread_and_a_box_behind_a_lost_answer_is_adopted(
    spread, tmp_path, monkeypatch
):
    monkeypatch.setattr(http.random, "random", lambda: spread)
    faults = Replies(statuses=[429, 504], retry_after_s=2.0)

    async def work(fake, boxes, ledger):
        env = new(boxes, ledger)
        await env.reset(PHONE, 1)
        assert env._box in fake.boxes
        await env.step(Button(name="home"))
        await env.close()

    fake = with_boxes(faults, work, tmp_path)
    first, second = faults.asked_at
    assert second - first >= 2.0 * (1 + spread / 4)
    assert fake.counts() == {"made": 1, "live": 0, "actions": 1, "doubled": 0}


@pytest.mark.parametrize("status", [400, 401, 403, 409, 500, 503])
def test_c40_what_is_refused_for_good_or_of_unknown_fate_is_asked_once(status, tmp_path):
    faults = Replies(statuses=[status])

    async def work(fake, boxes, ledger):
        env = new(boxes, ledger)
        with pytest.raises(EnvError, match=str(status)):
            await env.reset(PHONE, 1)
        await env.close()

    with_boxes(faults, work, tmp_path)
    assert len(faults.asked_at) == 1


def test_c40_64_at_once_of_which_some_are_refused_start_8_at_a_time(tmp_path):
    faults = Replies(statuses=[429, 200, 504] * 10, retry_after_s=0.1, start_s=0.2)

    async def work(fake, boxes, ledger):
        starting = anyio.CapacityLimiter(8)

        async def one():
            env = new(boxes, ledger, starting)
            await env.reset(PHONE, 1)
            await env.close()

        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(one)

    fake = with_boxes(faults, work, tmp_path)
    assert len(faults.asked_at) == 64 + 10
    assert (fake.counts()["made"], fake.counts()["doubled"]) == (64, 0)
    assert 1 < fake.most_pending <= 8


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (Replies(statuses=[429] * 99, retry_after_s=0.4), "GBox has made no box after 1 s"),
        (Replies(start_s=1e6), "is not running after 1 s"),
    ],
    ids=["refused again and again", "never running"],
)
def test_c40_the_time_to_start_is_one_for_all_attempts_and_gives_the_slot_back(faults, said, tmp_path):
    async def work(fake, boxes, ledger):
        starting = anyio.CapacityLimiter(1)

        def made(task):
            if task.task_id == "later":
                faults.statuses, faults.start_s = [], 0.0
            return new(boxes, ledger, starting, 60.0 if task.task_id == "later" else 1.0)

        tasks = [PHONE.model_copy(update={"task_id": name}) for name in ("first", "later")]
        first, later = await roll_out(tasks, made, lambda number, env: Acting(env, []), at_once=1)
        assert failed_in_env(first), first
        assert said in first.failure.message
        assert went_well(later), later.failure

    with_boxes(faults, work, tmp_path)
