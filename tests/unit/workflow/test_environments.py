from functools import partial

import anyio
import pytest

from cuarl.agent.scripted import RandomAgent
from cuarl.config.load import resolve
from cuarl.env.backend import Backend
from cuarl.errors import ConfigError, PrerequisiteError, TaskError
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import Limits, plan
from cuarl.settings import Settings
from cuarl.tasks.task import Check, Task
from cuarl.workflow.environments import backend, check
from tests.unit.workflow.switch import TASKS, Lamp

TASK = TASKS[0].instantiate(0)


class OfItsTask(Lamp):
    def __init__(self, task):
        self.task = task


async def later(task):
    return OfItsTask(task)


def made(env):
    config = resolve(flags={"env": env}).config
    return anyio.run(backend(config, TASKS, Settings()).make_env, TASK)


def test_an_environment_of_ones_own_is_made_of_nothing_or_of_its_task_at_once_or_later():
    assert isinstance(made("tests.unit.workflow.switch:Lamp"), Lamp)
    assert made(f"{__name__}:OfItsTask").task is made(f"{__name__}:later").task is TASK


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("simm", r'no environment "simm" \(did you mean "sim"'),
        ("gone.away:Env", 'the environment "gone.away:Env" can\'t be imported'),
        (f"{__name__}:TASK", "neither a class nor a function"),
    ],
    ids=["unknown", "not there", "no maker"],
)
def test_what_is_none_is_said(env, said):
    with pytest.raises(ConfigError, match=said):
        backend(resolve(flags={"env": env}).config, TASKS, Settings())


@pytest.mark.parametrize("env", ["linux", "browser", "gym", "gymnasium", "browsergym", "openenv"])
def test_an_environment_with_tasks_of_its_own_takes_no_others(env):
    """Where a package is missing on this machine, that may be said first."""
    with pytest.raises((ConfigError, TaskError, PrerequisiteError), match=r"lamp_on|is not installed|pip install"):
        backend(resolve(flags={"env": env}).config, TASKS, Settings())


@pytest.mark.parametrize(("at_most", "wanted", "found"), [(None, 7, 7), (3, 7, 3), (9, 7, 7)])
def test_a_backend_bounds_what_is_wanted(at_most, wanted, found):
    assert Backend(later, at_most=at_most).concurrent(wanted) == found


PLUGIN = """
from PIL import Image
from cuarl.env.backend import Backend
from cuarl.env.simple import SimpleEnv
from cuarl.errors import ConfigError


class Bell(SimpleEnv):
    rung = False

    def screen(self):
        return Image.new("RGB", (64, 64), "red" if self.rung else "black")

    def act(self, action):
        self.rung = True

    def facts(self):
        return {"rung": self.rung}


def backend(config, tasks, settings):
    async def make(task):
        return Bell()

    return Backend(make, at_most=2)


def check_options(config, tasks):
    if config.max_turns == 7:
        raise ConfigError("a bell rings once")
"""


def test_an_installed_package_adds_a_backend_by_its_own_folder_alone(tmp_path, monkeypatch):
    facts = tmp_path / "bells-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: bells\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[cuarl.environments]\nbell = bells_env\nsim = bells_env\n")
    (tmp_path / "bells_env.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    task = Task(id="ring", description="Ring", env="bell", checks=(Check(path="rung", value=True),))
    config = resolve(flags={"env": "bell"}).config
    found = backend(config, [task], Settings())
    assert found.concurrent(8) == 2 and backend(resolve().config, TASKS[:0], Settings()).at_most is None
    groups = anyio.run(partial(collect, plan([task], group_size=2, run_seed=0, prefix="x"), Setup(
        make_env=found.make_env, make_agent=lambda spec, env: RandomAgent(env.capabilities.actions), limits=Limits(max_turns=1),
    )))  # fmt: skip
    assert [t.success for t in groups[0].trajectories] == [True, True]
    with pytest.raises(ConfigError, match="a bell rings once"):
        check(resolve(flags={"env": "bell", "max_turns": 7}).config, [task], Settings())
    with pytest.raises(ConfigError, match=r"bel.*did you mean .bell."):
        backend(resolve(flags={"env": "bel"}).config, [task], Settings())
