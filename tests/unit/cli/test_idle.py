"""Options that a use of a command could not honour are refused by name."""

from importlib import import_module

import pytest

from cuarl.cli.app import run
from cuarl.cli.idle import check_launch
from cuarl.config.load import resolve
from cuarl.env.openenv.backend import terms
from cuarl.env.openenv.options import Options
from cuarl.errors import ConfigError
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.train.launch import Launch
from cuarl.train.nodes import Node

CHECK = (Check(path="x", value=1),)


def task(env="phone", **fields):
    return Task(id="a", description="Do it", env=env, checks=CHECK, **fields)


def config(**fields):
    return resolve(flags=fields).config


def check_options(env, fields, tasks):
    import_module(f"cuarl.env.{env}.backend").check_options(config(**fields).env, tasks)


READING = task("adb", preset={"reads": {"x": "foreground"}})
MINIWOB = task("browser", preset={"page": "click-test"})


@pytest.mark.parametrize(
    ("fields", "tasks", "says"),
    [
        pytest.param({"env": "browser", "browser_settle_ms": 5}, [MINIWOB], "env.settle_ms", id="never waited for"),
        pytest.param({"env": "gbox", "gbox_box_type": "linux"}, [task("phone")], "env.box_type",
            id="tasks say their box"),
        pytest.param({"env": "pods", "pods_session_type": "phone"}, [task("desktop")], "env.session_type",
            id="and session"),
        pytest.param(
            {"env": "gymnasium", "gymnasium_repeat": 4}, [task("gymnasium", preset={"id": "CartPole-v1", "repeat": 2})],
            "env.repeat", id="tasks preset it",
        ),
        pytest.param({"env": "adb", "adb_snapshot": "clean"}, [READING], "adb-snapshot", id="no task is reset so"),
    ],
)  # fmt: skip
def test_an_option_that_the_tasks_leave_nothing_to_say_is_refused(fields, tasks, says):
    with pytest.raises(ConfigError, match=f"{says} has no effect"):
        check_options(fields["env"], fields, tasks)


def test_options_of_a_server_that_says_it_itself_are_refused():
    asked = TaskInstance(task_id="a", goal="b", env="openenv")
    with pytest.raises(ConfigError, match=r"env\.picture has no effect"):
        terms(Options(picture="screen"), {"action": {"title": "CuarlAction"}}, asked)


@pytest.mark.parametrize(
    ("fields", "tasks"),
    [
        ({"env": "browser", "browser_settle_ms": 5}, [MINIWOB, task("browser", preset={"url": "http://127.0.0.1:1/"})]),
        ({"env": "gbox", "gbox_box_type": "linux"}, [task("phone"), task("gbox")]),
        ({"env": "pods", "pods_session_type": "phone"}, [task("desktop"), task("pods")]),
        ({"env": "gymnasium", "gymnasium_repeat": 4}, [task("gymnasium", preset={"id": "CartPole-v1"})]),
        ({"env": "adb", "adb_snapshot": "clean", "adb_reset": "snapshot"}, [READING, task("phone")]),
    ],
    ids=lambda value: value["env"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_one_task_of_a_run_can_honour_is_taken_for_all(fields, tasks):
    check_options(fields["env"], fields, tasks)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"env": "browser", "browser_settle": "frame", "browser_settle_ms": 5}, "env.settle_ms has no effect"),
        ({"env": "gym", "gym_eval_number_range": "001-002", "gym_seed": 1}, "env.seed has no effect"),
        ({"env": "gym", "gym_eval_number_range": "001-002", "gym_train_ratio": 0.5}, "env.train_ratio has no effect"),
        ({"env": "gym", "gym_actor": "mini-agent", "gym_settle_ms": 5}, "env.settle_ms has no effect"),
        *(
            ({"env": env, "side_effects": "report"}, f"side_effects has no effect with env {env}")
            for env in ("gym", "gymnasium", "browsergym", "openenv")
        ),
        ({"algorithm": "sft", "sft_runs": "a", "temperature": 0.5}, "temperature has no effect with algorithm sft"),
        ({"algorithm": "sft", "sft_runs": "a", "eval_tasks": "b", "tasks": "c"}, "tasks has no effect"),
        ({"trainer": "tinker", "save_total_limit": 2}, "save_total_limit has no effect with trainer tinker"),
        ({"trainer": "tinker", "tinker_loss": "importance_sampling", "clip_high": 0.3}, "clip_high has no effect"),
        ({"trainer": "tinker", "tinker_loss": "cispo", "clip_low": 0.1}, "clip_low has no effect"),
        (
            {"trainer": "tinker", "algorithm": "sft", "sft_runs": "a", "tinker_loss": "cispo"},
            "trainer.loss has no effect",
        ),
    ],
    ids=str,
)
def test_combinations_without_effect_are_refused(fields, says):
    with pytest.raises(ConfigError, match=says):
        resolve(flags=fields)


@pytest.mark.parametrize(
    ("processes", "accelerate", "world"), [(1, "ddp", None), (1, "fsdp2", "2"), (2, "ddp", "2"), (4, None, "2")]
)
def test_a_launcher_that_launches_nothing_is_refused(processes, accelerate, world):
    with pytest.raises(ConfigError, match=r"has no effect|that a launcher has started"):
        check_launch(Launch(processes), accelerate, world)


def test_several_processes_make_no_probe():
    with pytest.raises(ConfigError, match="--nodes has no effect on --probe"):
        check_launch(Launch(1, node=Node(0, 2)), None, None, probe=True)


@pytest.mark.parametrize(
    ("processes", "accelerate", "world"),
    [(1, None, None), (2, None, None), (2, "fsdp2", None), (2, None, "2"), (1, None, "2")]
)  # fmt: skip
def test_a_launcher_that_launches_is_taken(processes, accelerate, world):
    check_launch(Launch(processes), accelerate, world)


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """Runs a command that is to be refused, and gives what it says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goals.txt").write_text("Open Settings\nTake a screenshot\n")

    def told(*args):
        code = run(list(args))
        assert (code, (tmp_path / "runs").exists()) == (2, False)
        return capsys.readouterr().err

    return told


@pytest.mark.parametrize("flags", [("--accelerate", "fsdp2"), ("--accelerate", "ddp")])
def test_accelerate_with_one_process_is_refused(told, flags):
    assert "--accelerate has no effect without several processes" in told("train", *flags)


def test_training_on_goals_without_checks_is_refused(told):
    said = told("train", "--tasks", "goals.txt", "--eval-tasks", "goals.txt")
    assert (
        "tasks without checks can't be scored" in said
        and "fix: give them checks (docs/guides/tasks.md), or --reward judge" in said
    )


@pytest.mark.parametrize(
    "flags",
    [
        ("--episodes", "5"), ("--attempts", "2"), ("--no-baselines",), ("--by-task",), ("--name", "x"), ("--seed", "3"),
        ("--tasks", "settings"), ("-s", "seed=3"), ("--dry-run",), ("--fail-under", "0.5"), ("--db", "sqlite:///x.db"),
    ],
    ids=lambda flags: flags[0],
)  # fmt: skip
def test_a_curve_takes_nothing_that_measures(told, flags):
    assert f"--curve takes runs and --out alone, not {flags[0].replace('--no-', '--')}" in told(
        "eval", "--curve", "a", *flags
    )


@pytest.mark.parametrize(
    "flags", [("--no-baselines",), ("--name", "x"), ("--fail-under", "0.5"), ("base",)], ids=lambda flags: flags[0]
)
def test_a_comparison_takes_nothing_of_a_single_target(told, flags):
    assert "--compare takes two targets, and no" in told("eval", "--compare", "nothing", "oracle", *flags)


@pytest.mark.parametrize(
    "flags",
    [("--model-name", "x"), ("--eval-temperature", "0.1"), ("--max-tokens", "5"), ("--device", "cpu"), ("--baselines",),
     ("--renderer-name", "json"), ("--top-k", "3")],
    ids=lambda flags: flags[0],
)  # fmt: skip
def test_an_agent_that_asks_no_model_takes_none_of_its_options(told, flags):
    assert f"{flags[0]} has no effect on oracle" in told("eval", "oracle", *flags)


def test_a_demonstration_is_worded_here_and_asks_no_server(told):
    said = told("rollout", "--agent", "demonstration", "--model-base-url", "http://127.0.0.1:9/v1")
    assert "--model-base-url has no effect on the agent demonstration" in said


@pytest.mark.parametrize(
    "flags", [("--device", "cpu"), ("--dtype", "float32"), ("--quantization", "none")], ids=lambda flags: flags[0]
)
def test_a_model_that_is_elsewhere_is_not_loaded_here(told, flags):
    url = "http://127.0.0.1:9/v1"
    assert f"{flags[0]} has no effect on an endpoint" in told("eval", url, "--model-name", "tiny", *flags)
    assert f"{flags[0]} has no effect on a policy behind model_base_url" in told(
        "rollout", "--model-base-url", url, *flags
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("sessions", "serve", "phone", "--screen", "800x600"), "--screen has no effect on a simulated device"),
        (("sessions", "serve", "linux", "--profile", "tall"), "--profile has no effect on a linux desktop"),
        (("sessions", "serve", "phone", "--seed", "3"), "--seed has no effect without --task"),
        (("serve", "http://127.0.0.1:9/v1", "--model-name", "tiny", "--device", "cpu"),
            "--device has no effect on a policy"),
        (("serve-env", "--max-failed-share", "0.5"), "--max-failed-share"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_a_server_takes_no_option_that_it_could_not_honour(told, args, says):
    assert says in told(*args)
