from collections import Counter

import anyio
import pytest

from cuarl.config.load import resolve
from cuarl.env.backend import Backend
from cuarl.env.sim.devices import make_sim
from cuarl.errors import SamplerError
from cuarl.tasks.source import load
from cuarl.workflow.collector import ALONE, Collector, InTurn, Processes, stretch
from cuarl.workflow.players import scripted
from cuarl.workflow.source import Source
from tests.unit.workflow.switch import TASKS, Lamp


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

    async def make(task):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await anyio.sleep(0.005)  # or one episode is over before the next begins
        env = make_sim(task.env, "small", clutter=0.0)
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


# --- what is sampled from ------------------------------------------------------------------------------------------


def in_turn(source, backend=None, processes=ALONE, **fields):
    flags = {"group_size": 2, "groups_per_batch": 2, "max_turns": 1, **fields}

    async def make(task):
        return Lamp()

    collector = Collector(config=resolve(flags=flags).config, tasks=TASKS, run_id="r", backend=backend or Backend(make))
    return InTurn(collector, source, processes=processes)


@pytest.mark.anyio
async def test_a_source_is_brought_up_to_date_before_a_step_and_rests_after_it():
    done = []

    async def refresh(version):
        done.append(version)

    async def rest():
        done.append("rest")

    def accept(groups):
        done.append(len(groups))
        return groups[:1]

    collect = in_turn(Source(scripted("nothing"), refresh, rest, accept))
    assert len((await collect(1, 0)).groups) == 1
    assert len((await collect(2, 5)).groups) == 1
    assert done == [0, "rest", 2, 5, "rest", 2]


@pytest.mark.anyio
async def test_a_source_rests_also_when_its_episodes_can_not_be_had():
    done = []

    async def refuse(version):
        raise SamplerError("gone")

    async def rest():
        done.append("rest")

    with pytest.raises(SamplerError):
        await in_turn(Source(scripted("nothing"), refuse, rest))(1, 0)
    assert done == ["rest"]


@pytest.mark.anyio
async def test_processes_share_a_step_and_together_collect_what_one_does(monkeypatch):
    monkeypatch.setattr("cuarl.workflow.collector.gather_batch", lambda batch: batch)
    source = Source(scripted("random"))
    alone = (await in_turn(source, groups_per_batch=4)(1, 0)).groups
    shared = [(await in_turn(source, groups_per_batch=4, processes=Processes(rank, 2))(1, 0)).groups for rank in (0, 1)]
    assert [g.group_id for g in shared[0]] == [g.group_id for g in alone[0::2]]
    assert [g.group_id for g in shared[1]] == [g.group_id for g in alone[1::2]]
    actions = [[turn.action for t in g.trajectories for turn in t.turns] for g in alone]
    assert actions == [
        [turn.action for t in g.trajectories for turn in t.turns]
        for g in (shared[0][0], shared[1][0], shared[0][1], shared[1][1])
    ]


@pytest.mark.anyio
async def test_groups_that_teach_nothing_are_collected_anew_as_often_as_is_wanted():
    """Doing nothing scores every attempt of a group alike."""
    collect = in_turn(Source(scripted("nothing")), algorithm="dapo", dynamic_sampling_rounds=2)
    batch = await collect(3, 0)
    assert batch.groups == () and len(batch.collected) == 6
    names = [g.group_id for g in batch.collected]
    assert len(set(names)) == 6 and sum(".again1" in n for n in names) == sum(".again2" in n for n in names) == 2


@pytest.mark.anyio
async def test_a_curriculum_chooses_the_tasks():
    class First:
        def choose(self, ids, count):
            return [ids[0]] * count

    collect = in_turn(Source(scripted("nothing")))
    collect._collector.curriculum = First()
    assert [g.task_id for g in (await collect(1, 0)).groups] == ["lamp_off"] * 2
