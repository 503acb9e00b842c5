"""Groups that fail whole are collected again, on the same device, led by an oracle for as long as was said."""

import pytest

from cuarl.agent.guided import GuidedAgent, LedAgent
from cuarl.agent.scripted import DemonstratingAgent, OracleAgent
from cuarl.config.load import resolve
from cuarl.env.backend import Backend
from cuarl.env.sim.devices import make_sim
from cuarl.errors import ConfigError
from cuarl.policy.load import load_renderer
from cuarl.policy.spec import ModelSpec
from cuarl.tasks.source import load
from cuarl.train.hints import Hints
from cuarl.types import Button, Finish
from cuarl.workflow import players
from cuarl.workflow.collector import ALONE, Collector, InTurn, Processes
from cuarl.workflow.job import _check_oracle_helps
from cuarl.workflow.players import Player
from cuarl.workflow.source import Source
from tests.unit.workflow.switch import TASKS as LAMPS
from tests.unit.workflow.switch import experiment
from tests.unit.workflow.test_dagger import Plays

CONFIG = resolve(flags={"group_size": 2, "groups_per_batch": 2, "max_turns": 9, "hint_turns": 2}).config
TASKS = load(["train_02_enable_wifi", "train_05_airplane_mode"]).tasks


def player(play, renderer):
    """``play(turns)`` gives what the policy does in an attempt that is led for so many turns; None: not at all."""

    def words(env):
        return players._wording(CONFIG, env, lambda *a: players.written(renderer, *a), renderer.seen_size)

    def make(spec, env):
        guidance = spec.guidance
        policy = Plays(words(env), play(spec, guidance.first if guidance else None))
        if guidance is None:
            return policy
        oracle = DemonstratingAgent(OracleAgent(env), words(env))
        if guidance.first is None:
            return GuidedAgent(policy, oracle, share=guidance.share)
        return LedAgent(policy, oracle, turns=guidance.first)

    return Player("plays", make)


async def make_env(task):
    return make_sim(task.env, "small", clutter=0.0)


def collecting(play, renderer, hints, *, may_solve=lambda task: True, processes=ALONE, config=CONFIG):
    backend = Backend(make_env, may_solve=may_solve)
    collector = Collector(config=config, tasks=TASKS, run_id="r", backend=backend, hints=hints)
    return InTurn(collector, Source(player(play, renderer)), processes=processes)


@pytest.fixture(scope="module")
def renderer():
    return load_renderer(ModelSpec(model="tiny"))


def at_once(spec, first):
    """Claims to be done in its first turn."""
    return []


def whose(t):
    return [t.decided(turn.index).get("by", "policy") for turn in t.turns]


@pytest.mark.anyio
async def test_groups_that_fail_whole_come_again_led_on_the_same_device(renderer):
    def play(spec, first):
        return [Button(name="home")] * 9 if first is None else []

    collect = collecting(play, renderer, Hints(2))
    batch = await collect(1, 0)
    assert len(batch.groups) == 2 and set(batch.led) == {g.group_id for g in batch.groups}
    for group in batch.groups:
        led = batch.led[group.group_id]
        assert (led.task_id, led.seed, led.group_id) == (group.task_id, group.seed, f"{group.group_id}.hint")
        for own, t in zip(group.trajectories, led.trajectories, strict=True):
            assert set(whose(own)) == {"policy"} and own.led == 0
            assert whose(t)[: t.led] == ["oracle"] * t.led and 1 <= t.led <= 2
            assert set(whose(t)[t.led :]) == {"policy"}
            assert isinstance(t.turns[-1].action, Finish), "the claim is the policy's"
            assert t.goal == own.goal and t.turns[0].screenshot == own.turns[0].screenshot
    assert batch.collected == batch.groups


@pytest.mark.anyio
async def test_a_lead_that_is_long_enough_leaves_only_the_claim_to_the_policy(renderer):
    batch = await collecting(at_once, renderer, Hints(8))(1, 0)
    led = [t for group in batch.led.values() for t in group.trajectories]
    assert len(led) == 4 and all(t.success and whose(t)[-1] == "policy" for t in led)
    assert all(not t.success for group in batch.groups for t in group.trajectories)
    hints = Hints(8)
    hints.observe(list(batch.led.values()))
    for group in batch.led.values():
        assert hints.length(group.task_id) == max(1, group.trajectories[0].led - 1)


@pytest.mark.anyio
async def test_nobody_is_led_where_nothing_tells_the_way_or_where_hints_are_off(renderer):
    one = TASKS[0].id
    batch = await collecting(at_once, renderer, Hints(2), may_solve=lambda task: task.id == one)(1, 0)
    assert [group.task_id for group in batch.led.values()] == [one]
    assert (await collecting(at_once, renderer, None)(1, 0)).led == {}


@pytest.mark.anyio
async def test_processes_share_the_led_groups_and_the_same_step_is_the_same_again(renderer, monkeypatch):
    alone = await collecting(at_once, renderer, Hints(3))(1, 0)
    again = await collecting(at_once, renderer, Hints(3))(1, 0)

    def did(batch):
        groups = (*batch.groups, *batch.led.values())
        return [
            (g.group_id, g.seed, [(t.info["sampling_seed"], [x.action for x in t.turns]) for t in g.trajectories])
            for g in groups
        ]

    assert did(alone) == did(again)
    seeds = [t.info["sampling_seed"] for g in (*alone.groups, *alone.led.values()) for t in g.trajectories]
    assert len(set(seeds)) == 8, "led attempts have chances of their own"

    # what each process runs of the led groups; the failures are the whole batch's
    monkeypatch.setattr(
        "cuarl.workflow.collector.gather_batch",
        lambda batch: batch if ".hint" in batch.groups[0].group_id else alone_groups,
    )
    alone_groups = type(alone)(alone.groups, alone.pictures)
    shared = [await collecting(at_once, renderer, Hints(3), processes=Processes(rank, 2))(1, 0) for rank in (0, 1)]
    assert [list(batch.led) for batch in shared] == [[alone.groups[0].group_id], [alone.groups[1].group_id]]
    assert did(shared[0])[2:] + did(shared[1])[2:] == did(alone)[2:]


@pytest.mark.anyio
async def test_failures_are_demonstrated_once_each_by_the_oracle_alone(renderer):
    flags = {"group_size": 2, "groups_per_batch": 2, "max_turns": 12, "imitation_coef": 0.5}
    config = resolve(flags=flags).config
    batch = await collecting(at_once, renderer, None, config=config)(1, 0)
    assert batch.led == {} and set(batch.demonstrated) == {g.group_id for g in batch.groups}
    for group in batch.groups:
        (t,) = batch.demonstrated[group.group_id].trajectories
        assert t.success and t.led == len(t.turns) and (t.task_id, t.seed) == (group.task_id, group.seed)
        assert isinstance(t.turns[-1].action, Finish)
        assert all(image.digest in batch.pictures for turn in t.turns for image in turn.sampled.images)
    both = await collecting(at_once, renderer, Hints(2), config=config)(1, 0)
    assert set(both.led) == set(both.demonstrated) == set(batch.demonstrated)
    shorter = resolve(flags={**flags, "max_turns": 1}).config
    assert (await collecting(at_once, renderer, None, config=shorter)(1, 0)).demonstrated == {}, "it ran out of turns"


def test_tasks_that_nothing_tells_how_to_solve_are_named_and_where_there_are_no_others_it_is_refused(tmp_path):
    given = experiment(tmp_path, hint_turns=2)
    backend = Backend(make_env, may_solve=lambda task: task.id == LAMPS[0].id)
    _check_oracle_helps(given, backend, LAMPS)
    assert given.watcher.notes == ["--hint-turns has no effect on tasks that nothing tells how to solve: lamp_off"]
    with pytest.raises(ConfigError, match="nothing tells how any of the tasks is solved") as caught:
        _check_oracle_helps(given, backend, LAMPS[1:])
    assert caught.value.where == "--hint-turns"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"algorithm": "ppo"}, "hint_turns"),
        ({"algorithm": "gigpo"}, "hint_turns"),
        ({"algorithm": "sft", "sft_runs": ("mine",)}, "hint_turns"),
        ({"credit": "screen"}, "algorithm.hint_turns has no effect with algorithm.credit screen"),
        ({"max_steps_off_policy": 1}, "algorithm.hint_turns collects again within a step"),
        ({"trainer": "tinker"}, "algorithm.hint_turns is not supported with trainer tinker"),
    ],
)
def test_what_has_no_place_for_an_oracles_help_refuses_it_by_name(flags, says):
    for option, value in (("hint_turns", 2), ("imitation_coef", 0.5)):
        with pytest.raises(ConfigError, match=says.replace("hint_turns", option)):
            resolve(flags={option: value, **flags})
