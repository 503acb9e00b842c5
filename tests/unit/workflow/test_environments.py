import json
import sys
from functools import partial

import anyio
import pytest

from cuarl.agent.scripted import RandomAgent
from cuarl.cli.app import run
from cuarl.config.load import resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.config.show import as_json
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
from typing import Literal
from PIL import Image
from cuarl.config.fields import EnvOptions
from cuarl.env.backend import Backend
from cuarl.env.simple import SimpleEnv
from cuarl.errors import ConfigError


class Options(EnvOptions):
    type: Literal["bell"] = "bell"
    pulls: int = 1
    '''How often it must be pulled.'''
    cracked: bool = False
    '''Whether it never rings.'''


class Bell(SimpleEnv):
    rung = False

    def __init__(self, options):
        self.options, self.pulled = options, 0

    def screen(self):
        return Image.new("RGB", (64, 64), "red" if self.rung else "black")

    def act(self, action):
        self.pulled += 1
        self.rung = self.pulled >= self.options.pulls and not self.options.cracked

    def facts(self):
        return {"rung": self.rung}


def backend(options, config, tasks, settings):
    async def make(task):
        return Bell(options)

    return Backend(make, at_most=2)


def check_options(options, tasks):
    if options.pulls == 7:
        raise ConfigError("a bell rings once")
"""


@pytest.fixture
def bells(tmp_path, monkeypatch):
    """An installed package that adds an environment, and would like to take one of ours."""
    facts = tmp_path / "bells-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: bells\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[cuarl.environments]\nbell = bells_env\nsim = bells_env\n")
    (tmp_path / "bells_env.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("bells_env", None)


RING = Task(id="ring", description="Ring", env="bell", checks=(Check(path="rung", value=True),))


def rings(config):
    """Whether two episodes of one action each ring the bell."""
    found = backend(config, [RING], Settings())
    groups = anyio.run(
        partial(
            collect,
            plan([RING], group_size=2, run_seed=0, prefix="x"),
            Setup(
                make_env=found.make_env,
                make_agent=lambda spec, env: RandomAgent(env.capabilities.actions),
                limits=Limits(max_turns=1),
            ),
        )
    )
    return [t.success for t in groups[0].trajectories]


def test_an_installed_package_adds_a_backend_by_its_own_folder_alone(bells):
    config = resolve(flags={"env": "bell"}).config
    assert backend(config, [RING], Settings()).concurrent(8) == 2 and rings(config) == [True, True]
    assert backend(resolve().config, TASKS[:0], Settings()).at_most is None
    with pytest.raises(ConfigError, match=r"bel.*did you mean .bell."):
        backend(resolve(flags={"env": "bel"}).config, [RING], Settings())


def test_it_brings_options_of_its_own(bells, tmp_path, capsys):
    (tmp_path / "bell.yaml").write_text("env:\n  type: bell\n  pulls: 2\n")
    found = resolve(files=[tmp_path / "bell.yaml"])
    assert rings(found.config) == [False, False] and found.sources["env.pulls"].endswith("bell.yaml, line 3")
    assert ExperimentConfig(env={"type": "bell", "pulls": 2}) == found.config
    assert ExperimentConfig.model_validate_json(as_json(found.config)) == found.config
    with pytest.raises(ConfigError, match=r'unknown key "env.puls" \(did you mean "env.pulls"\?\)'):
        resolve(sets=["env=bell", "env.puls=2"])
    with pytest.raises(ConfigError, match=r'unknown key "env.pulls"'):
        resolve(sets=["env.pulls=2"])
    with pytest.raises(ConfigError, match="a bell rings once"):
        check(resolve(sets=["env=bell", "env.pulls=7"]).config, [RING], Settings())


def test_its_options_are_flags_and_have_their_help(bells, capsys):
    flags = ["--env", "bell", "--bell-pulls", "3", "--bell-cracked"]
    assert run(["train", *flags, "--print-config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env"] == {"type": "bell", "pulls": 3, "cracked": True}
    assert run(["train", "--env=bell", "--bell-pulls=4", "--no-bell-cracked", "--print-config", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["env"] == {"type": "bell", "pulls": 4, "cracked": False}
    assert run(["train", "--env", "bell", "--help"]) == 0
    assert "How often it must be pulled." in capsys.readouterr().out
    assert run(["train", "--bell-pulls", "3"]) == 2
    assert "no such option" in capsys.readouterr().err
