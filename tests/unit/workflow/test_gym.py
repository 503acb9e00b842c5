"""Executions of a gym for commands: who acts decides what is put around them."""

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.config.load import resolve
from cuarl.env.gym.env import GymEnv
from cuarl.errors import ConfigError
from cuarl.integrations.mini_agent import MiniAgentEnv
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow.environments import backend

TASK = Task(id="t", description="d", env="gym")


def made(actor, tmp_path, *, task=TASK):
    config = resolve(flags={"env": "gym"}, sets=[f"env.actor={actor}", "env.executions=3"]).config
    settings = Settings(gbox_api_key="key", sessions_dir=tmp_path)

    async def work():
        found = backend(config, [task], settings)
        await found.start()
        env = await found.make_env(task.instantiate(0))
        await found.close()
        return found, env

    return anyio.run(work)


def test_cuarl_acts_in_step_with_its_policy_and_the_mini_agent_at_its_own_pace(tmp_path):
    own, env = made("cuarl", tmp_path)
    assert type(env) is GymEnv and own.in_step and own.concurrent(8) == 3
    theirs, env = made("mini-agent", tmp_path)
    assert type(env) is MiniAgentEnv and not theirs.in_step and theirs.concurrent(8) == 3


@pytest.mark.parametrize("actor", ["cuarl", "mini-agent"])
def test_a_task_of_another_environment_is_refused(actor, tmp_path):
    with pytest.raises(ConfigError, match="is for linux, and not for a gym"):
        made(actor, tmp_path, task=TASK.model_copy(update={"env": "linux"}))
