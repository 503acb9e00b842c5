"""The stream with a sampler that answers each request by itself, like a server."""

from __future__ import annotations

import anyio
import pytest
from counter_env import TASK, Asking, CounterEnv, setup, spec

from cuarl.errors import SamplerError
from cuarl.policy.sampler import SamplerCapabilities
from cuarl.rollout.pause import RecallingSampler
from cuarl.rollout.request_gate import RequestGate
from cuarl.rollout.stream import Stream, StreamConfig
from cuarl.trajectory import Sampled

pytestmark = pytest.mark.anyio
SIZE = 2


class Server:
    """Answers by the weights that it has when the answer is ready, after a while that depends on the request."""

    capabilities = SamplerCapabilities(token_ids=True, logprobs=True, images=True, name="server")

    def __init__(self):
        self.version, self.under_way, self.swapped_under, self.asked = 0, 0, [], 0

    async def sample(self, request):
        self.under_way += 1
        self.asked += 1
        version = self.version
        await anyio.sleep(0.001 * (request.seed % 7))
        assert version == self.version, "the weights were exchanged while an answer was under way"
        self.under_way -= 1
        images = tuple(p.screenshot.ref for p in request.messages[0].parts)
        return Sampled(token_ids=(1,), logprobs=(-1.0,), policy_version=version, images=images)

    async def swap(self, version):
        self.swapped_under.append(self.under_way)
        # other tasks run meanwhile, as they do while a server loads an adapter
        await anyio.sleep(0.002)
        self.version = version

    async def close(self):
        pass


def stream(server, turns, *, max_age=1):
    gate = RequestGate()
    sampler = RecallingSampler(server, gate)
    made = setup(CounterEnv, lambda s, e: Asking(sampler, turns(int(s.group_id[2:]))))
    return Stream(
        StreamConfig(2, max_age, 64),
        gate,
        made,
        plan=lambda t: [spec(i, t.serial) for i in range(SIZE)],
        next_tasks=lambda serial, count: [TASK.task_id] * count,
        swap=server.swap,
    )


async def test_weights_change_only_while_no_answer_is_under_way_and_no_group_is_too_old():
    server = Server()
    collected = stream(server, lambda serial: 2 + serial % 5)
    seen = []
    async with collected.running():
        for step in range(1, 9):
            taken = await collected.take(step, step - 1)
            seen += [g.group_id for g in taken.groups]
            assert max(taken.ages) <= 1
            versions = [t.sampled.policy_version for g in taken.groups for e in g.trajectories for t in e.turns]
            assert all(step - 2 <= v <= step - 1 for v in versions)
            # an update takes a while, and episodes go on
            await anyio.sleep(0.005)
            await collected.settled()
    assert server.swapped_under == [0] * 8
    assert len(seen) == len(set(seen)) == 16


async def test_episodes_go_on_while_the_next_batch_waits_to_be_taken():
    server = Server()
    collected = stream(server, lambda serial: 2 if serial < 2 else 9)
    async with collected.running():
        with anyio.fail_after(5):
            while collected.waiting < 4:
                await anyio.sleep(0.001)
        assert server.asked == 2 * SIZE * (2 + 9), "nobody was held, though the batch was complete long before"
        assert len((await collected.take(1, 0)).groups) == 2


async def test_who_waits_when_collecting_ends_is_turned_away():
    gate = RequestGate()
    gate.close()
    async with anyio.create_task_group() as tasks:

        async def ask():
            with pytest.raises(SamplerError, match="collecting has ended"):
                async with gate.request():
                    raise AssertionError("let through")

        tasks.start_soon(ask)
        await anyio.sleep(0)
        gate.end()
