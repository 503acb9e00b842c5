import anyio
import pytest

from cuarl.env.backend import Backend
from cuarl.errors import RolloutError
from cuarl.store import Store
from cuarl.workflow import environments
from cuarl.workflow.players import Player, scripted
from cuarl.workflow.rollouts import collect
from tests.unit.workflow.switch import TASKS, Lamp, experiment


def test_a_group_of_each_task_is_recorded_and_the_watcher_told(tmp_path):
    asked = experiment(tmp_path)
    run, trajectories = collect(asked, TASKS, 2, scripted("nothing"))
    assert [t.task_id for t in trajectories] == ["lamp_on"] * 2 + ["lamp_off"] * 2
    assert [t.success for t in trajectories] == [False, False, True, True]
    assert asked.watcher.events == [("start", {"run": run.name, "run_id": run.run_id, "episodes": 4})]
    assert asked.watcher.seen[-1] == (4, 4) and asked.watcher.parts == [("nothing", False)]
    assert run.manifest.kind == "rollout" and run.status == "success"
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db") as store:
        assert len(list(store.trajectories(run=run.run_id))) == 4


def test_no_more_run_at_the_same_time_than_the_environments_bear(tmp_path, monkeypatch):
    running, most, closed = set(), [], []

    class Counted(Lamp):
        def begin(self, task, seed):
            running.add(self)
            most.append(len(running))

        async def step(self, action):
            await anyio.sleep(0.001)  # or one episode is over before the next begins
            return await super().step(action)

        def end(self):
            running.discard(self)

    async def make(task):
        return Counted()

    async def close():
        closed.append(True)

    monkeypatch.setattr(environments, "backend", lambda *_: Backend(make, close=close, at_most=2))
    collect(experiment(tmp_path, max_concurrent_rollouts=8), TASKS * 3, 2, scripted("random"))
    assert (max(most), running, closed) == (2, set(), [True])


def test_the_player_is_started_before_the_first_and_closed_whatever_happened(tmp_path):
    done = []

    async def note(what):
        done.append(what)

    def refuse(spec, env):
        done.append("asked")
        raise ValueError("no agent")

    player = Player("odd", refuse, start=lambda: note("started"), close=lambda: note("closed"))
    with pytest.raises(RolloutError, match="no agent"):
        collect(experiment(tmp_path), TASKS[:1], 1, player)
    assert done == ["started", "asked", "closed"]
