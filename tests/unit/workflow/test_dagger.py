"""What an oracle says beside a policy that goes astray, and what is made of it."""

import pytest

from cuarl.agent.guided import GuidedAgent
from cuarl.agent.scripted import DemonstratingAgent, OracleAgent
from cuarl.config.load import resolve
from cuarl.env.sim.devices import make_sim
from cuarl.policy.load import load_renderer
from cuarl.policy.spec import ModelSpec
from cuarl.rollout.episode import run_episode
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import plan
from cuarl.tasks.source import load
from cuarl.types import Button, Finish
from cuarl.workflow import players
from cuarl.workflow.dagger import guide
from cuarl.workflow.imitation import labelled


class Plays:
    """A policy that answers what it is told, turn by turn, and then claims success."""

    name = "plays"

    def __init__(self, wording, actions):
        self._wording, self._actions = wording, actions

    def see(self, observation, history):
        self._wording.see(observation, history)

    async def act(self, task, observation, history, seed):
        self.see(observation, history)
        action = self._actions[len(history)] if len(history) < len(self._actions) else Finish(success=True)
        return self._wording.decision(task, history, action)


async def played(actions, share=0.0):
    config, renderer = resolve(flags={}).config, load_renderer(ModelSpec(model="tiny"))

    def words(env):
        return players._wording(config, env, lambda *a: players.written(renderer, *a), renderer.seen_size)

    async def make(task):
        return make_sim(task.env, "small", clutter=0.0)

    def agent(spec, env):
        oracle = DemonstratingAgent(OracleAgent(env), words(env))
        return GuidedAgent(Plays(words(env), actions), oracle, share=share)

    (spec,) = plan(load(["train_02_enable_wifi"]).tasks, group_size=1, run_seed=0, prefix="g")
    episode = await run_episode(spec, Setup(make_env=make, make_agent=agent))
    return episode.trajectory, renderer


@pytest.mark.anyio
async def test_the_policys_turns_are_labelled_and_a_claim_that_comes_too_early_is_overruled():
    t, renderer = await played([Button(name="home"), Button(name="home")])
    decided = [t.decided(turn.index) for turn in t.turns]
    assert [d["by"] for d in decided[:3]] == ["policy", "policy", "oracle"]
    assert "terminate" in decided[2]["instead_of"] and t.success and decided[-1]["by"] == "policy"
    told = labelled(t, renderer.encode_answer)
    for turn, own, d in zip(told.turns, t.turns, decided, strict=True):
        assert turn.sampled.prompt_ids == own.sampled.prompt_ids and turn.sampled.logprobs is None
        assert turn.sampled.token_ids == renderer.encode_answer(d.get("label", own.sampled.text))
    assert "Home" in t.turns[0].sampled.text and "Home" not in told.turns[0].sampled.text


@pytest.mark.anyio
async def test_with_certainty_every_turn_is_the_oracles_and_that_fades():
    t, renderer = await played([Button(name="home")] * 9, share=1.0)
    assert t.success and {t.decided(turn.index)["by"] for turn in t.turns} == {"oracle"}
    assert labelled(t, renderer.encode_answer).turns == t.turns
    shares = guide(resolve(flags={"algorithm": "dagger", "dagger_beta": 0.8, "dagger_decay": 0.5}).config)
    assert [shares(step).share for step in (1, 2, 3)] == [0.8, 0.4, 0.2]
