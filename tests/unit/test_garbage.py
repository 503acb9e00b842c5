"""When garbage is looked for, and that episodes on simulated devices leave none."""

import gc
import weakref
from collections.abc import Iterator

import anyio
import pytest

from cuarl import garbage
from cuarl.agent.base import Agent
from cuarl.agent.scripted import OracleAgent, RandomAgent
from cuarl.env.base import Env
from cuarl.env.sim.devices import make_sim
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec, plan
from cuarl.tasks.source import load
from cuarl.tasks.task import TaskInstance


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.enable()


class Knot:
    """An object in a cycle."""

    def __init__(self) -> None:
        self.itself = self


def test_collections_of_all_objects_are_put_off_while_anyone_wants_it():
    gc.set_threshold(700, 10, 10)
    first, second = garbage.deferred(), garbage.deferred()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == (10_000, 10, garbage.DEFERRED)
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (10_000, 10, garbage.DEFERRED)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


def test_thresholds_come_back_after_an_error():
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="no"), garbage.deferred():
        raise ValueError("no")
    assert gc.get_threshold() == (700, 10, 10)


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_what_is_made_while_modules_load_is_looked_at_neither_then_nor_later():
    gc.set_threshold(10, 1, 1)
    frozen = gc.get_freeze_count()
    with garbage.loading():
        while_loading = weakref.ref(Knot())
        kept = [[] for _ in range(1000)]
        assert while_loading() is not None
    assert gc.isenabled() and gc.get_freeze_count() > frozen + len(kept)
    later = weakref.ref(Knot())
    gc.collect()
    assert later() is None and while_loading() is not None


def test_loading_leaves_collections_off_where_they_were():
    gc.disable()
    frozen = gc.get_freeze_count()
    with garbage.loading():
        pass
    assert not gc.isenabled() and gc.get_freeze_count() == frozen


def test_new_garbage_is_collected():
    gc.collect()
    gone = weakref.ref(Knot())
    garbage.look_at_new()
    assert gone() is None


@pytest.mark.parametrize("off", [gc.disable, lambda: gc.set_threshold(0)], ids=["disabled", "threshold-0"])
def test_who_turned_collections_off_has_none(off):
    gc.collect()
    off()
    gone = weakref.ref(Knot())
    with garbage.deferred():
        list(map(list, [[]] * 50_000))
        garbage.look_at_new()
    assert gone() is not None


def oracle(spec: EpisodeSpec, env: Env) -> Agent:
    return OracleAgent(env)


def at_random(spec: EpisodeSpec, env: Env) -> Agent:
    return RandomAgent(env.capabilities.actions)


@pytest.mark.parametrize(
    ("device", "suite", "make_agent"),
    [("phone", "settings_train", oracle), ("phone", "phone_train", at_random), ("desktop", "desktop_train", oracle)],
)
def test_episodes_on_simulated_devices_leave_no_garbage(device, suite, make_agent):
    """So that nothing is lost while collections of all objects are put off."""

    async def make_env(task: TaskInstance) -> Env:
        return make_sim(device)

    async def work() -> None:
        specs = plan(load([suite]).tasks[:2], group_size=2, run_seed=0, prefix="g")
        await collect(specs, Setup(make_env=make_env, make_agent=make_agent))
        garbage.look_at_new()  # what the task groups left
        gc.collect()
        gc.disable()
        await collect(specs, Setup(make_env=make_env, make_agent=make_agent))
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()

    gc.collect()
    try:
        anyio.run(work)
        ours = {type(x).__qualname__ for x in gc.garbage if type(x).__module__.startswith(("cuarl", "PIL"))}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert ours == set()
