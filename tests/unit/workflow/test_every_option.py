"""Every field of an experiment, with every trainer, algorithm and environment, has an effect or is refused by name.

Refused: the configuration can't be made, and the message names the field. Else it must change what the parts of a run
are told (``told``), or be read by the code that every such run goes through (``READ``). What an algorithm's options
change in an update is in ``tests/unit/train/test_every_option.py``.
"""

import ast
from functools import cache, partial
from pathlib import Path

import pytest

import cuarl
from cuarl.config.algorithms import ALGORITHMS, OPTIONS
from cuarl.config.backends import BACKENDS
from cuarl.config.keys import keys
from cuarl.config.kinds import kind_of
from cuarl.config.load import Resolved, resolve
from cuarl.config.unions import UNIONS
from cuarl.env.sim.devices import make_sim
from cuarl.errors import ConfigError
from cuarl.rollout.spec import EpisodeSpec
from cuarl.tasks.task import Task
from cuarl.workflow import players
from cuarl.workflow.evaluation import EvaluationPlan
from cuarl.workflow.from_config import learner_config, loop_config, model_spec
from cuarl.workflow.tinker import lora_options, tinker_config

KEYS = keys()
FIELDS = {name: key.field for name, key in KEYS.items()}
PACKAGE = Path(cuarl.__file__).parent
TRAINERS = {"local": tuple(ALGORITHMS), "tinker": ("grpo", "sft")}
TASK = Task(id="a", description="b", suite="s")

OTHER = {
    "tasks": ("a",), "eval_tasks": ("a",), "category": ("app",), "difficulty": ("hard",), "env": "linux",
    "model_name": "other", "load_checkpoint_path": "other", "lora_target_modules": ("q_proj",), "device": "cuda:7",
    "sampler_device": "cpu", "renderer_name": "json", "model_base_url": "http://127.0.0.1:9/v1", "reward": "simple",
    "served_model_name": "other", "sft_runs": ("other",), "lora_rank": 8,
    "sft_weights": ("human=2",), "clip_low": 0.11, "clip_high": 0.13,
    "linux_screen": "800x600", "browser_viewport": "800x600", "gbox_expires_in": "90m",
    "gym_eval_number_range": "001-009",
    "gym_listen": "127.0.0.1:9", "program_listen": "127.0.0.1:9",
    "gymnasium_actions": "point", "max_task_time_seconds": 900.0, "overlong_buffer": 9,
    "openenv_actions": "{}", "vllm_devices": "1", "browser_scale": 2.0,
    "workers": "2", "adam_beta1": 0.8, "adam_beta2": 0.9, "pods_expires_seconds": 7200,
}  # fmt: skip
"""A value that is not the default, where one can't be made from the kind of the field."""
TOGETHER = {
    "model_name": {"renderer_name": "json"}, "activation_gib": {"gradient_checkpointing": True},
    "lora_target_modules": {"lora_target_option": "custom"},
    "served_model_name": {"model_base_url": "http://127.0.0.1:9/v1"},
    **{f"vllm_{n}": {"vllm_python": "python3"} for n in ("port", "devices", "sleep", "gpu_memory", "args")},
    "vllm_start_seconds": {"vllm_python": "python3"},
    "rescore": {"model_base_url": "http://127.0.0.1:9/v1"},
    "keep_adapters": {"model_base_url": "http://127.0.0.1:9/v1"}, "sft_runs": {"algorithm": "sft"},
    "tinker_loss": {"trainer": "tinker"}, "coordinate_mode": {"env": "gbox"},
    "gym_agent": {"gym_actor": "mini-agent"}, "gym_poll_seconds": {"gym_actor": "mini-agent"},
    "gym_listen": {"gym_actor": "mini-agent"}, "gym_model_url": {"gym_actor": "mini-agent"},
    "gym_picture_hosts": {"gym_actor": "mini-agent"}, "history_older": {"history_turns": 2},
    "browser_har_after": {"browser_har": "site"}, "browser_har_missing": {"browser_har": "site"},
    "track_project": {"track": ("wandb",)},
    "judge_base_url": {"reward": "judge", "judge_model": "one"},
    "judge_model": {"reward": "judge", "judge_base_url": "http://127.0.0.1:9/v1"},
    "judge_screens": {"reward": "judge", "judge_model": "one", "judge_base_url": "http://127.0.0.1:9/v1"},
}  # fmt: skip
"""What a field needs beside it."""


def other(name):
    """Some value of a field that is not its default."""
    if name in OTHER:
        return OTHER[name]
    kind, default = kind_of(FIELDS[name]), FIELDS[name].default
    if kind.choices:
        return next(c for c in kind.choices if c != default)
    if kind.base is str:
        return ("other",) if kind.many else "other"
    return not default if kind.base is bool else (default or 0) + 1 if kind.base is int else (default or 1.0) / 2


def needed(name, algorithm):
    """What must be set beside a field for it to be honoured."""
    option = OPTIONS.get(name)
    extra = (
        {option.needs: option.values[0] if option.values else other(option.needs)} if option and option.needs else {}
    )
    deeper = needed(option.needs, algorithm) if extra else {}
    if name == "discount" and algorithm in ("grpo", "dr-grpo", "dapo", "gspo", "cispo"):
        extra["credit"] = "screen"
    return {**deeper, **extra, **TOGETHER.get(name, {})}


def made(trainer, algorithm, env, **fields):
    imitated = {"sft_runs": ("mine",)} if algorithm == "sft" else {}
    return resolve(flags={"trainer": trainer, "algorithm": algorithm, "env": env, **imitated, **fields}).config


def contexts():
    """Trainers with their algorithms on the simulator, and trainers with all environments."""
    for trainer, algorithms in TRAINERS.items():
        yield from ((trainer, algorithm, "sim") for algorithm in algorithms)
        yield from ((trainer, "grpo", env) for env in BACKENDS if env != "sim")


# --- what the parts of a run are told ------------------------------------------------------------------------------


def agents(config):
    """What the agents of training and of evaluation are made of."""
    env = make_sim("phone", getattr(config.env, "profile", "small"), clutter=0.0)
    spec = EpisodeSpec(task=TASK.instantiate(0), seed=0, sampling_seed=0, group_id="g", attempt=0)
    temperatures = [config.eval_temperature] + [config.temperature] * (config.algorithm.type != "sft")
    for temperature in temperatures:
        agent = players.model_agents(config, None, config.model_name, temperature=temperature, strict=True)(spec, env)
        yield vars(agent)["_params"], agent.name, vars(agent)["_history"].window


def told(config):
    """Everything that functions of the command line make of the configuration for those who do the work."""
    parts = [loop_config(config), EvaluationPlan(config=config, tasks=[TASK], episodes=config.eval_episodes).settings]
    parts += [] if config.env.type in ("gbox", "gym", "program") else list(agents(config))
    if config.trainer.type == "tinker":
        return repr([*parts, tinker_config(config), lora_options(config)])
    sources = dict.fromkeys((key.path for key in KEYS.values()), "default")
    spec = model_spec(Resolved(config, sources, (), None), config.device) if not config.load_checkpoint_path else None
    return repr([*parts, spec, learner_config(config)])


# --- what code reads -----------------------------------------------------------------------------------------------


@cache
def reads(path, *names):
    """Attributes that a file reads of a configuration, or the definitions of these ``names`` in it."""
    tree = ast.parse((PACKAGE / path).read_text())
    nodes = [n for n in tree.body if getattr(n, "name", None) in names] if names else [tree]
    assert len(nodes) == max(1, len(names)), (path, names)
    read = {n.attr for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return {name for name, key in KEYS.items() if {name, key.path.rpartition(".")[2]} & read}


@cache
def read_in_env(env):
    folders = [PACKAGE / "env" / {"sim": "sim"}.get(env, env)]
    files = [f.relative_to(PACKAGE) for folder in folders for f in folder.glob("*.py")]
    files += [Path(f"workflow/{name}.py") for name in ("environments", "foreign", "gym", "program")]
    return frozenset().union(*map(reads, files))


def read(trainer, env):
    """What every such run reads besides."""
    shared = reads("workflow/collector.py") | reads("workflow/imitation.py") | reads("workflow/episodes.py")
    shared |= reads("workflow/rehearsal.py", "rehearsing") | reads("workflow/dagger.py")
    shared |= (
        reads("workflow/evaluation.py")
        | reads("workflow/job.py")
        | reads("workflow/training.py")
        | reads("workflow/tracking.py", "Tracking")
        | reads("workflow/players.py")
        | reads("workflow/judged.py")
        | reads("workflow/workers/hire.py")
    )
    shared |= {"env", "policy", "trainer", "algorithm", *(n for n in read_in_env(env) if env in KEYS[n].owners)}
    shared |= {"max_turns"} & (shared | reads("workflow/gym.py"))
    if trainer == "tinker":
        return shared | reads("workflow/tinker.py")
    local = reads("workflow/local_trainer.py") | reads("workflow/endpoint.py") | reads("workflow/second_copy.py")
    local |= (
        reads("workflow/own_server.py")
        | reads("workflow/asynchronous.py")
        | reads("workflow/from_config.py", "_trained", "load_trained")
    )
    return shared | local


# --- the walk ------------------------------------------------------------------------------------------------------


def judged(name, trainer, algorithm, env):
    """``refused``, ``told``, ``read``, or what is wrong."""
    beside = {k: v for k, v in needed(name, algorithm).items() if k not in ("trainer", "algorithm", "env")}
    value = other(name)
    if value == ALGORITHMS[algorithm].defaults.get(name, FIELDS[name].default):
        value = next(v for v in (0.17, 3, "none", "token") if v != value and isinstance(v, type(value)))
    make = partial(made, trainer, algorithm, env)
    try:
        before = make(**{k: v for k, v in beside.items() if k != name})
    except ConfigError:
        before = None  # what it needs is refused itself, or needs it in turn
    try:
        after = make(**beside, **({name: value} if name != "env" else {}))
    except ConfigError as error:
        names = {KEYS[one].path for one in (name, *beside)}
        return "refused" if any(n in str(error) for n in names) else f"refused without its name: {error}"
    if before is not None and told(before) != told(after):
        return "told"
    return "read" if name in read(trainer, env) else "without effect"


@pytest.mark.parametrize("name", [n for n in FIELDS if n not in UNIONS])
def test_a_field_has_an_effect_or_is_refused_by_name(name):
    found = {context: judged(name, *context) for context in contexts()}
    assert {c: v for c, v in found.items() if v not in ("refused", "told", "read")} == {}
    assert set(found.values()) != {"refused"}, "good for nothing, or what it needs is to be told in TOGETHER"


def test_an_option_of_an_environment_is_refused_in_all_others():
    for name, key in KEYS.items():
        if key.path.startswith("env."):
            [owner] = key.owners
            found = {env: judged(name, "local", "grpo", env) for env in BACKENDS}
            assert {env for env, v in found.items() if v != "refused"} == {owner}, name


def test_the_walk_sees_what_is_refused_told_read_and_nothing_of_it():
    assert judged("clip_high", "local", "sft", "sim") == "refused"
    assert judged("max_grad_norm", "tinker", "grpo", "sim") == "told"
    assert judged("group_size", "tinker", "grpo", "sim") == "read"
    assert "adam_beta1" not in read("local", "sim") and "gae_lambda" not in read("tinker", "sim")
