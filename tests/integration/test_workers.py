"""Episodes that workers run: the same as one process's, all of them there whoever dies, and nobody left behind."""

import signal
from pathlib import Path

import psutil
import pytest

import cuarl
from cuarl.config.load import resolve
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.types import StopReason
from cuarl.workflow import environments
from cuarl.workflow.episodes import open_store
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.players import scripted
from cuarl.workflow.rollouts import collect
from cuarl.workflow.workers import hire
from cuarl.workflow.workers.work import Work
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import (  # noqa: F401
    checkpoint,
    finished,
    measured,
    options,
    place,
    started,
    wait_until,
)

pytestmark = pytest.mark.integration

ROOMS = Path(__file__).with_name("rooms.py")
CLOCK = {"started_at", "wall_s", "ready_s", "check_at", "check_s", "model_s", "env_s", "traceback"}
"""What two runs of the same episode need not share."""


@pytest.fixture(autouse=True)
def rooms(tmp_path, monkeypatch):
    """The folder in which rooms leave their marks."""
    for name in ("CUARL_RUNS_DIR", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "rooms"
    folder.mkdir()
    monkeypatch.setenv("ROOMS", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


class Deadly:
    """A watcher that kills a worker once the first episode is over."""

    def __init__(self):
        self.killed = None

    def note(self, text):
        pass

    def event(self, kind, data):
        pass

    def progress(self, what, total, *, part=False):
        from contextlib import nullcontext

        return nullcontext(self._kill)

    def _kill(self, trajectory, done, total):
        if self.killed is None:
            self.killed = workers()[0]
            self.killed.kill()


def workers(pid=None):
    """Those of a process."""
    children = psutil.Process(pid).children()
    return [p for p in children if "cuarl.workflow.workers.process" in p.cmdline()]


def tasks(*kinds):
    return [
        cuarl.Task(
            id=f"{kind}_{i}",
            description="Turn the lamp on",
            max_steps=6,
            preset={"kind": kind},
            checks=[{"path": "lamp", "value": True}],
        )
        for i, kind in enumerate(kinds)
    ]


def played(folder, chosen, *, group_size=1, watcher=None, **fields):
    flags = {"env": f"{ROOMS}:Room", "reward": f"{ROOMS}:odd", "max_failed_share": 1.0, **fields}
    extra = {} if watcher is None else {"watcher": watcher}
    asked = Experiment(resolved=resolve(flags=flags), settings=Settings.load(runs_dir=folder / "runs"), **extra)
    return collect(asked, chosen, group_size, scripted("random")).trajectories


def timeless(record):
    """A record without what depends on the clock and on the name of its run."""
    if isinstance(record, dict):
        return {k: timeless(v) for k, v in record.items() if k not in CLOCK | {"run_id", "episode_id", "group_id"}}
    return [timeless(v) for v in record] if isinstance(record, list | tuple) else record


def stored(folder):
    """All that is in a store: episodes, and screenshots byte for byte."""
    with open_store(Settings.load(runs_dir=folder / "runs")) as store:
        episodes = sorted((t.model_dump(mode="json") for t in store.trajectories()), key=lambda t: t["episode_id"][-6:])
        return timeless(episodes), {digest: store.blobs.png(digest) for digest in store.blobs.digests()}


def same(a, b):
    return [timeless(t.model_dump(mode="json")) for t in a] == [timeless(t.model_dump(mode="json")) for t in b]


def test_workers_record_what_one_process_does_failures_included(tmp_path):
    chosen = tasks("", "slow", "broken", "", "unrewarded", "slow")
    alone = played(tmp_path / "a", chosen, group_size=2)
    shared = played(tmp_path / "b", chosen, group_size=2, workers=2)
    assert same(alone, shared)
    assert stored(tmp_path / "a") == stored(tmp_path / "b")
    assert {t.failure.boundary for t in shared if t.failure} == {"env", "reward"}
    assert "ValueError: the lamp is broken" in shared[4].failure.message
    assert not workers()


def test_the_episodes_of_a_worker_that_is_killed_are_run_again_by_another(tmp_path, rooms):
    chosen, deadly = tasks("", *["slow"] * 11), Deadly()
    shared = played(tmp_path, chosen, workers=2, watcher=deadly)
    assert deadly.killed is not None and not deadly.killed.is_running()
    assert len(shared) == 12 and all(t.failure is None for t in shared)
    begun = [path.name.removesuffix("-closed").rsplit("-", 1) for path in rooms.iterdir()]
    again = {name for name, pid in begun if int(pid) == deadly.killed.pid} & {
        name for name, pid in begun if int(pid) != deadly.killed.pid
    }
    assert again, "some were begun by the one that died, and by another"
    assert same(shared, played(tmp_path, chosen))


def test_an_episode_that_kills_its_workers_fails_alone(tmp_path):
    shared = played(tmp_path, tasks(*["slow"] * 5, "deadly", *["slow"] * 5), workers=2)
    (failed,) = [t for t in shared if t.failure]
    assert failed is shared[5] and len(shared) == 11
    assert failed.stop is StopReason.FAILED and failed.reward is None and failed.failure.boundary == "env"
    assert "3 workers have died" in failed.failure.message


def test_ctrl_c_ends_workers_in_order_and_what_was_cut_short_is_recorded(place, rooms):  # noqa: F811
    process, own = running(place, rooms)
    process.send_signal(signal.SIGINT)
    code, err = finished(process)
    assert code == 130 and "Traceback" not in err, err
    assert not psutil.wait_procs(own, timeout=10)[1]
    assert all((rooms / f"{name}-closed").exists() for name in marks(rooms))
    assert [t.stop for t in place.episodes()] == [StopReason.CANCELLED] * 4


def test_workers_go_with_the_collector_that_is_killed_and_close_what_they_had(place, rooms):  # noqa: F811
    process, own = running(place, rooms)
    process.kill()
    finished(process)
    assert not psutil.wait_procs(own, timeout=20)[1]
    assert all((rooms / f"{name}-closed").exists() for name in marks(rooms))


def marks(rooms):
    return [path.name for path in rooms.iterdir() if not path.name.endswith("-closed")]


def running(place, rooms):  # noqa: F811
    """A rollout whose four episodes never end by themselves, and its two workers."""
    text = "\n".join(t.model_dump_json(exclude_defaults=True) for t in tasks(*["stuck"] * 4))
    (place.folder / "stuck.jsonl").write_text(text)
    args = ["rollout", "--agent", "random", "--tasks", "stuck.jsonl", "--env", f"{ROOMS}:Room", "--workers", "2"]
    process = started(place.folder, args)
    wait_until(lambda: len(marks(rooms)) == 4, process)
    own = workers(process.pid)
    assert len(own) == 2
    return process, own


@pytest.mark.parametrize("extra", [[], ["--max-steps-off-policy", "1"]], ids=["in turn", "asynchronous"])
def test_training_by_workers_is_what_it_is_in_one_process(place, options, extra):  # noqa: F811
    few = [*options, *extra, "--max-steps", "2", "--eval-every", "0", "--eval-episodes", "2", "--skip-baseline"]
    assert place.cuarl(*few, "--name", "alone").code == 0
    result = place.cuarl(*few, "--name", "shared", "--workers", "2")
    assert result.code == 0, result.err
    alone, shared = (place.folder / "runs" / name for name in ("alone", "shared"))
    assert measured(alone) == measured(shared)
    weights = [checkpoint(run, 2)["adapter_model.safetensors"] for run in (alone, shared)]
    assert weights[0] == weights[1]
    assert same(*(sorted(place.episodes(run_id(place, run)), key=order) for run in (alone, shared)))
    assert not workers()


def run_id(place, run):  # noqa: F811
    with place.store() as store:
        return next(r.id for r in store.runs() if r.name == run.name)


def order(trajectory):
    return trajectory.episode_id.split(".")[1:]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"workers": "0"}, '"0" is neither'),
        ({"workers": "many"}, '"many" is neither'),
        ({"workers": "2@3"}, '"2@3" is neither'),
    ],
)
def test_what_names_no_workers_is_refused(fields, says):
    with pytest.raises(ConfigError, match=says):
        resolve(flags=fields)


def test_an_agent_that_is_an_object_is_refused(tmp_path):
    class Mine:
        name = "mine"

        def __init__(self, env):
            pass

    with pytest.raises(ConfigError, match="an agent that was given as an object acts in this process alone"):
        cuarl.rollout(cuarl.Config(workers="2", env=f"{ROOMS}:Room"), agent=Mine, tasks=tasks(""))


def test_workers_ask_the_model_that_judges_themselves():
    config = resolve(
        flags={
            "reward": "judge", "judge_base_url": "http://127.0.0.1:9/v1", "judge_model": "any", "workers": "2",
            "env": f"{ROOMS}:Room",
        }
    ).config  # fmt: skip
    made = hire.backend(config, tasks(""), Settings(), hire.crew(config, Settings()))
    assert made.play(scripted("random").make_agent, None).func.__name__ == "play"
    assert Work.of(config, Settings(), tasks(""), scripted("random").make_agent).backend().opine is not None


def test_objects_that_only_one_process_has_are_refused(monkeypatch):
    class Mine(cuarl.SimpleEnv):
        pass

    from cuarl import objects

    config = resolve(flags={"env": objects.name(Mine), "workers": 2}).config
    with pytest.raises(ConfigError, match="object that only this process has, so workers can't share it"):
        environments.check(config, [], Settings())
