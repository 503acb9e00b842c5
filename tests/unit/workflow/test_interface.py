"""The Python interface: with objects of one's own, in and out of event loops, and light to import."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest

import cuarl
from cuarl import objects
from cuarl.agent.scripted import DoNothingAgent
from cuarl.errors import ConfigError
from cuarl.policy.sampler import SamplerCapabilities
from cuarl.settings import Settings
from cuarl.store.records import HumanVerdict
from cuarl.trajectory import Sampled
from cuarl.workflow.episodes import open_store
from tests.unit.workflow.switch import TASKS, Lamp

ENDLESS = [cuarl.Task(id="endless", description="Go on", max_steps=100_000, checks=TASKS[0].checks)]
SHORT = {
    "max_steps": 1,
    "groups_per_batch": 2,
    "group_size": 2,
    "max_turns": 2,
    "eval_episodes": 2,
    "skip_baseline": True,
}


def thrifty(trajectory):
    return float(trajectory.success or False) - 0.1 * len(trajectory.turns)


@pytest.fixture
def settings(tmp_path):
    return Settings.load(runs_dir=tmp_path / "runs")


def nothing(env):
    return DoNothingAgent()


def loaded(*modules):
    """All modules of a process that has imported these."""
    code = f"import sys, json, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    return set(
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    )


def test_importing_it_loads_nothing_heavy():
    assert loaded("typing", "importlib", "cuarl") - loaded("typing", "importlib") == {"cuarl"}
    assert "torch" in loaded("cuarl.policy.load"), "the measure sees what is heavy"


def test_packages_stay_packages_and_can_be_called():
    import cuarl.train.loop  # sets the attribute of the package anew

    assert callable(cuarl.train) and callable(cuarl.rollout) and callable(cuarl.evaluate)
    assert cuarl.train.loop.LoopConfig is sys.modules["cuarl.train.loop"].LoopConfig
    assert set(cuarl.__all__) <= set(dir(cuarl))
    for name in cuarl.__all__:
        assert getattr(cuarl, name) is not None
    with pytest.raises(AttributeError, match="trian"):
        _ = cuarl.trian


def test_a_rollout_of_ones_own_agent_environment_and_reward(settings):
    run = cuarl.rollout(
        tasks=TASKS, env=Lamp, agent=nothing, reward=thrifty, episodes=4, group_size=2, settings=settings
    )
    rows = run.table()
    assert [row["task_id"] for row in rows] == ["lamp_on"] * 2 + ["lamp_off"] * 2
    assert [row["success"] for row in rows] == [False, False, True, True]
    assert rows[0]["reward"] == rows[0]["reward/thrifty"] == pytest.approx(-0.1 * rows[0]["turns"])
    assert run.config.reward == f"{__name__}:thrifty" and run.config.env.type == "tests.unit.workflow.switch:Lamp"
    assert run.episodes[0].turns[0].action is not None and run.status == "success"
    digest = run.episodes[0].turns[0].screenshot.digest
    assert run.picture(digest).image.getpixel((0, 0)) == (0, 0, 0)
    again = cuarl.load_run(run.name, settings)
    assert [t.episode_id for t in again.episodes] == [row["episode_id"] for row in rows] and run.name in repr(again)
    with open_store(settings) as store:
        store.save_human_verdict(HumanVerdict(episode_id=rows[0]["episode_id"], success=True))
    first = run.table()[0]
    assert (first["success"], first["recorded_success"]) == (True, False)
    assert run.episodes[0].success is False, "episodes are as recorded"


def test_an_evaluation_of_ones_own_agent(settings):
    found = cuarl.evaluate(agent=nothing, tasks=TASKS, env=Lamp, episodes=4, settings=settings)
    assert (found.overall.n, found.overall.success_rate) == (4, 0.5)
    assert {o.task_id for o in found.outcomes} == {"lamp_on", "lamp_off"}


class Clicks:
    """A policy that says the same whatever it is asked."""

    capabilities = SamplerCapabilities(token_ids=False, logprobs=False, images=True, name="clicks")

    async def sample(self, request):
        call = '{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [500, 500]}}'
        return Sampled(text=f"<tool_call>\n{call}\n</tool_call>", exact=False, policy="clicks")

    async def close(self):
        pass


def test_a_policy_of_ones_own_is_asked_by_the_agent_of_the_model(settings):
    config = cuarl.Config(max_turns=1)
    run = cuarl.rollout(config, policy=Clicks(), tasks=TASKS, env=Lamp, settings=settings)
    assert [(t.turns[0].action.kind, t.success) for t in run.episodes] == [("click", True), ("click", False)]
    assert {t.policy for t in run.episodes} == {"clicks"}
    found = cuarl.evaluate(config=config, policy=Clicks(), tasks=TASKS, env=Lamp, episodes=2, settings=settings)
    assert found.overall.success_rate == 0.5 and found.policy == "clicks"
    with pytest.raises(ConfigError, match="agent has no effect"):
        cuarl.rollout(config, policy=Clicks(), agent="oracle", tasks=TASKS, env=Lamp, settings=settings)


def test_it_works_inside_a_running_event_loop(settings):
    async def notebook():
        return cuarl.rollout(tasks=TASKS, env=Lamp, agent=nothing, settings=settings)

    assert len(asyncio.run(notebook()).table()) == 2


def test_it_can_be_awaited_beside_other_work(settings):
    async def work():
        return await asyncio.gather(
            cuarl.arollout(tasks=TASKS, env=Lamp, agent=nothing, settings=settings), asyncio.sleep(0, "other")
        )

    run, other = asyncio.run(work())
    assert (len(run.episodes), other) == (2, "other")


def test_whoever_cancels_waits_until_it_has_ended(settings):
    begun = threading.Event()

    class Endless(Lamp):
        async def step(self, action):
            begun.set()
            await asyncio.sleep(0.01)
            return await super().step(action)

    async def work():
        config = cuarl.Config(max_turns=100_000)
        rollout = cuarl.arollout(config, tasks=ENDLESS, env=Endless, agent="random", settings=settings)
        task = asyncio.create_task(rollout)
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert cuarl.load_run("latest", settings).status == "cancelled"


def test_what_can_not_be_imported_is_held_and_can_not_be_resumed(settings):
    reward = lambda trajectory: 0.0  # noqa: E731
    run = cuarl.train(cuarl.Config(**SHORT, model_name="tiny"), tasks=TASKS, env=Lamp, reward=reward, settings=settings)
    assert "<lambda>" in run.config.reward
    with pytest.raises(ConfigError, match=r"the reward .*<lambda> is an object of this session alone"):
        cuarl.train(tasks=TASKS, resume=run.name, settings=settings)
    objects._HELD.clear()
    with pytest.raises(ConfigError, match="was an object of one Python session"):
        cuarl.train(tasks=TASKS, resume=run.name, settings=settings)


def test_several_processes_refuse_what_only_one_has(settings, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="several processes can't share it"):
        cuarl.train(tasks=TASKS, env=Lamp, reward=lambda trajectory: 0.0, settings=settings)


def test_a_run_is_resumed_with_the_same_objects(settings):
    config = cuarl.Config(**{**SHORT, "save_every": 1})
    first = cuarl.train(config, tasks=TASKS, env=Lamp, reward=thrifty, settings=settings)
    more = cuarl.train(cuarl.Config(max_steps=2), tasks=TASKS, resume=first.name, settings=settings)
    assert more.path == first.path
    assert [row["step"] for row in more.metrics] == [1, 2]
    assert [e.step for e in more.evaluations] == [1, 2]


def test_what_on_step_raises_ends_the_run(settings):
    def refuse(step, metrics):
        raise ValueError("enough")

    with pytest.raises(RuntimeError, match="on_step failed at step 1: enough"):
        cuarl.train(cuarl.Config(**SHORT), tasks=TASKS, env=Lamp, on_step=refuse, settings=settings)
    assert cuarl.load_run("latest", settings).status == "failed"
