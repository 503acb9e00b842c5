import anyio
import pytest

from cuarl.config.load import resolve
from cuarl.errors import ConfigError, PrerequisiteError, TaskError
from cuarl.rollout.spec import EpisodeSpec
from cuarl.settings import Settings
from cuarl.workflow.backend import Backend
from cuarl.workflow.environments import backend
from tests.unit.workflow.switch import TASKS, Lamp

SPEC = EpisodeSpec(task=TASKS[0].instantiate(0), seed=0, sampling_seed=0, group_id="g")


class OfItsTask(Lamp):
    def __init__(self, task):
        self.task = task


async def later(task):
    return OfItsTask(task)


def made(env):
    config = resolve(flags={"env": env}).config
    return anyio.run(backend(config, TASKS, Settings()).make_env, SPEC)


def test_an_environment_of_ones_own_is_made_of_nothing_or_of_its_task_at_once_or_later():
    assert isinstance(made("tests.unit.workflow.switch:Lamp"), Lamp)
    assert made(f"{__name__}:OfItsTask").task is made(f"{__name__}:later").task is SPEC.task


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("simm", r'no environment "simm" \(did you mean "sim"'),
        ("gone.away:Env", 'the environment "gone.away:Env" can\'t be imported'),
        (f"{__name__}:SPEC", "neither a class nor a function"),
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
