"""How long environments take decides nothing that is learnt: neither in turn with collecting nor beside it."""

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import anyio
import pytest
import torch

from cuarl.config.load import resolve
from cuarl.monitor.sinks import FanOut
from cuarl.policy.load import load_policy
from cuarl.settings import Settings
from cuarl.tasks.select import Filters
from cuarl.tasks.source import load
from cuarl.tasks.suites import shipped_folder
from cuarl.train.learner import Learner
from cuarl.train.loop import LoopConfig, train
from cuarl.train.processes import join_processes
from cuarl.workflow import environments, players
from cuarl.workflow.asynchronous import Asynchronous, own_copy
from cuarl.workflow.collector import Collector, InTurn
from cuarl.workflow.from_config import learner_config, model_spec
from cuarl.workflow.source import Source
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401

pytestmark = [pytest.mark.integration, pytest.mark.slow]


class Late:
    def __init__(self, env, seconds):
        self._env, self._seconds = env, seconds

    def __getattr__(self, name):
        return getattr(self._env, name)

    async def step(self, action):
        await anyio.sleep(self._seconds)
        return await self._env.step(action)


def late(backend, *seconds):
    """``backend`` whose environments take this long for a step, by turns."""
    spells = cycle(seconds)

    async def make(task):
        return Late(await backend.make_env(task), next(spells))

    return replace(backend, make_env=make)


class Unsaved:
    def save(self, step):
        return Path()

    def commit(self, step, metrics, pending):
        pass


def weights(model, age, *seconds):
    """What three steps make of the part of the adapter that starts at zero."""
    luck = "tests.integration.test_slow_environments:luck"
    resolved = resolve(
        flags={
            "model_name": str(model),
            "device": "cpu",
            "max_steps": 3,
            "groups_per_batch": 2,
            "group_size": 3,
            "max_turns": 3,
            "max_tokens": 6,
            "reward": luck,
            "learning_rate": 1e-2,
            "max_steps_off_policy": age,
        }
    )
    config, sink = resolved.config, FanOut([])
    filters = Filters(categories=(), difficulties=("easy",), limit=3, seed=0)
    tasks = load(("settings_train",), filters, role="train", folders=[shipped_folder()]).tasks
    learner = Learner(load_policy(model_spec(resolved, "cpu")), learner_config(config), join_processes("cpu"))
    backend = late(environments.backend(config, tasks, Settings()), *seconds)
    collector = Collector(config=config, tasks=tasks, run_id="r", backend=backend, curriculum=learner.curriculum)
    loop = LoopConfig(max_steps=config.max_steps, eval_every=0, save_every=0, skip_baseline=True)

    async def unmeasured(step):
        return None

    async def work():
        if age:
            beside = Asynchronous(collector, learner, own_copy(config, learner), sink)
            async with beside.running():
                await train(loop, learner, beside, unmeasured, sink, Unsaved(), 0, beside.settled)
            return
        player = players.in_process(config, learner.policy, temperature=1.0, strict=True)
        await train(loop, learner, InTurn(collector, Source(player)), unmeasured, sink, Unsaved())

    anyio.run(work)
    trained = learner.policy.model.named_parameters()
    return torch.cat([p.detach().flatten() for name, p in trained if "lora_B" in name])


def luck(trajectory):
    """A reward that depends on the answers alone."""
    if trajectory.verdict is None:
        return None
    return float(sum(sum(turn.sampled.token_ids) for turn in trajectory.turns) % 3)


@pytest.mark.parametrize("age", [0, 2])
def test_latency_changes_no_weight(qwen3_folder, age):  # noqa: F811
    quick = weights(qwen3_folder, age, 0.0)
    assert torch.equal(weights(qwen3_folder, age, 0.0, 0.03, 0.1), quick)
    assert quick.abs().sum() > 0, "something was learnt"
