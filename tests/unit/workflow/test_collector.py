from collections import Counter

import anyio
import pytest

from cuarl.config.load import resolve
from cuarl.env.sim.make import make_sim
from cuarl.tasks.source import load
from cuarl.workflow.collector import Collector, InTurn, stretch
from cuarl.workflow.environments import Backend
from cuarl.workflow.players import scripted
from cuarl.workflow.source import Source


def test_every_task_comes_once_an_epoch_in_an_order_of_its_own():
    tasks = list(range(10))
    drawn = [t for step in range(1, 11) for t in stretch(tasks, 0, step, 3)]
    epochs = [tuple(drawn[i : i + 10]) for i in (0, 10, 20)]
    assert all(sorted(epoch) == tasks for epoch in epochs)
    assert len(set(epochs)) == 3


def test_a_step_draws_the_same_whatever_was_drawn_before():
    assert list(stretch("abcde", 1, 4, 3)) == list(stretch("abcde", 1, 4, 3))
    assert Counter(stretch("ab", 0, 1, 5)) in ({"a": 3, "b": 2}, {"a": 2, "b": 3})
    assert list(stretch("abcdefgh", 1, 1, 8)) != list(stretch("abcdefgh", 2, 1, 8))


@pytest.mark.anyio
async def test_no_collector_runs_more_episodes_at_once_than_the_environments_bear():
    """The one that collects for a service that trains elsewhere, too, which has no learner here."""
    running, most = 0, 0

    async def make(spec):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await anyio.sleep(0)
        env = make_sim(spec.task.env, "small", clutter=0.0)
        close = env.close

        async def closed():
            nonlocal running
            running -= 1
            await close()

        env.close = closed
        return env

    config = resolve(flags={"trainer": "tinker", "group_size": 4, "groups_per_batch": 2, "max_turns": 2}).config
    tasks = load(["settings"]).tasks[:2]
    collector = Collector(config=config, tasks=tasks, run_id="r", backend=Backend(make, at_most=3))
    batch = await InTurn(collector, Source(scripted("nothing")))(1, 0)
    assert (len(batch.groups), most, running) == (2, 3, 0)
