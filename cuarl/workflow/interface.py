"""What ``import cuarl`` offers: train, roll out, evaluate, with objects of one's own (docs/start/python.md).

The plain functions may be called anywhere, a notebook's running event loop included: there they work in a thread. Each
has a form to be awaited (``atrain``, ``arollout``, ``aevaluate``).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from cuarl import objects
from cuarl.agent.base import Agent
from cuarl.config.load import resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.env.base import Env
from cuarl.errors import ConfigError
from cuarl.evaluate.suite import Evaluation
from cuarl.policy.sampler import Sampler
from cuarl.rollout.pool import Progress
from cuarl.rollout.reward import RewardFunction
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow import environments, players, rollouts, target_evaluation
from cuarl.workflow import episodes as parts
from cuarl.workflow.experiment import Experiment, run_to_resume
from cuarl.workflow.loaded_run import LoadedRun
from cuarl.workflow.players import Player
from cuarl.workflow.targets import Target, resolve_target
from cuarl.workflow.threads import apart, awaited

logger = logging.getLogger(__name__)

Config = ExperimentConfig
OnStep = Callable[[int, Mapping[str, float]], object]
"""Called with each step's number and metrics."""
MakeEnv = Callable[..., Any]
"""A class or function that makes the environment of one episode, of its task instance or of nothing."""
OwnAgent = Callable[[Env], Agent]
"""Makes the agent of one episode, given its environment."""


# --- what is offered -----------------------------------------------------------------------------------------------


def train(
    config: Config | None = None,
    *,
    tasks: Sequence[Task] | None = None,
    eval_tasks: Sequence[Task] | None = None,
    reward: RewardFunction | None = None,
    env: MakeEnv | None = None,
    name: str | None = None,
    overwrite: bool = False,
    resume: str | Path | None = None,
    accept_changes: bool = False,
    on_step: OnStep | None = None,
    settings: Settings | None = None,
) -> LoadedRun:
    """Train a policy, evaluate it as the configuration says, and return the run.

    ``eval_tasks`` are ``tasks`` where only these are given. ``reward`` and ``env`` are recorded by their import path;
    what can't be imported, such as a function of a notebook, makes a run that can't be resumed. Raises CuarlError, and
    KeyboardInterrupt when it was interrupted: all that was finished is saved then, and ``resume`` continues from it.
    """
    settings = _told(settings)
    reference = None if resume is None else run_to_resume(str(resume), settings, name=name, overwrite=overwrite)
    experiment = _experiment(
        config,
        settings,
        tasks=tasks,
        eval_tasks=tasks if eval_tasks is None else eval_tasks,
        reward=reward,
        env=env,
        name=name,
        overwrite=overwrite,
        resume=reference,
        accept_changes=accept_changes,
        on_step=on_step,
    )
    return apart(partial(_train, experiment))


def rollout(
    config: Config | None = None,
    *,
    agent: str | OwnAgent = "policy",
    policy: Sampler | None = None,
    tasks: Sequence[Task] | None = None,
    reward: RewardFunction | None = None,
    env: MakeEnv | None = None,
    episodes: int | None = None,
    group_size: int = 1,
    name: str | None = None,
    overwrite: bool = False,
    settings: Settings | None = None,
) -> LoadedRun:
    """Collect episodes, the tasks in turn, and return the run; without ``episodes``, one group of each task.

    ``agent`` is a name (policy, oracle, random, nothing, demonstration) or makes an agent of an environment; ``policy``
    is a sampler that the model's agent asks. Raises CuarlError.
    """
    settings = _told(settings)
    experiment = _experiment(config, settings, tasks=tasks, reward=reward, env=env, name=name, overwrite=overwrite)
    return apart(partial(_rollout, experiment, agent, policy, episodes, group_size))


def evaluate(
    target: str | LoadedRun = "latest",
    config: Config | None = None,
    *,
    agent: str | OwnAgent | None = None,
    policy: Sampler | None = None,
    tasks: Sequence[Task] | None = None,
    env: MakeEnv | None = None,
    episodes: int | None = None,
    attempts: int = 1,
    baselines: bool = False,
    name: str | None = None,
    settings: Settings | None = None,
) -> Evaluation:
    """Success on evaluation tasks with its interval: of a run, a checkpoint, an endpoint, or one's own agent or policy.

    ``target`` is what ``cuarl eval`` takes. A run is evaluated with its own configuration where ``config`` says nothing
    else. Raises CuarlError.
    """
    settings = _told(target.settings if isinstance(target, LoadedRun) else settings)
    experiment = _experiment(config, settings, tasks=tasks, eval_tasks=tasks, env=env, name=name)
    found = str(target.path) if isinstance(target, LoadedRun) else target
    return apart(partial(_evaluate, experiment, found, agent, policy, episodes, attempts, baselines))


async def atrain(*args: Any, **options: Any) -> LoadedRun:
    """``train``, to be awaited. A cancelled one saves what is finished first."""
    return await awaited(partial(train, *args, **options))


async def arollout(*args: Any, **options: Any) -> LoadedRun:
    """``rollout``, to be awaited."""
    return await awaited(partial(rollout, *args, **options))


async def aevaluate(*args: Any, **options: Any) -> Evaluation:
    """``evaluate``, to be awaited."""
    return await awaited(partial(evaluate, *args, **options))


# --- how it is done ------------------------------------------------------------------------------------------------


def _told(settings: Settings | None) -> Settings:
    """The settings that were given, or those of this machine; the hub's client is told its token in any case."""
    found = settings or Settings.load()
    found.tell_hub()
    return found


def _experiment(
    config: Config | None,
    settings: Settings,
    *,
    reward: RewardFunction | None = None,
    env: MakeEnv | None = None,
    tasks: Sequence[Task] | None = None,
    on_step: OnStep | None = None,
    resume: Path | None = None,
    **more: Any,
) -> Experiment:
    given = {name: getattr(config, name) for name in config.model_fields_set} if config is not None else {}
    if reward is not None:
        given["reward"] = objects.name(reward)
    if env is not None:
        given["env"] = objects.name(env)
    if tasks is not None:
        given["tasks"] = tuple(task.id for task in tasks)
    files = [] if resume is None else [resume / "config.json"]
    return Experiment(
        resolved=resolve(files=files, flags=given),
        settings=settings,
        watcher=_Watching(on_step),
        tasks=tasks,
        resume=resume,
        command=("python", *sys.argv),
        **more,
    )


def _train(experiment: Experiment) -> LoadedRun:
    from cuarl.workflow.job import Job
    from cuarl.workflow.training import train as run_training

    return LoadedRun(run_training(Job.of(experiment)).run.path, experiment.settings)


def _rollout(
    experiment: Experiment, agent: str | OwnAgent, policy: Sampler | None, episodes: int | None, group_size: int
) -> LoadedRun:
    tasks = parts.tasks_of(experiment, "train")
    environments.check(experiment.config, tasks, experiment.settings)
    groups = -(-episodes // group_size) if episodes else len(tasks)
    player = _own_player(experiment.config, agent, policy, experiment.config.temperature)
    if player is None:
        players.check_agent(str(agent))
        player = rollouts.player_of(experiment, str(agent))
    done = rollouts.collect(experiment, list(islice(cycle(tasks), groups)), group_size, player)
    return LoadedRun(done.run.path, experiment.settings)


def _evaluate(
    experiment: Experiment,
    target: str,
    agent: str | OwnAgent | None,
    policy: Sampler | None,
    episodes: int | None,
    attempts: int,
    baselines: bool,
) -> Evaluation:
    player = _own_player(experiment.config, agent, policy, experiment.config.eval_temperature)
    if player is not None:
        found = Target("scripted", player.name)
    else:
        found = resolve_target(agent if isinstance(agent, str) else target, experiment.settings)
    what = target_evaluation.evaluation_plan(experiment, found, episodes, attempts)
    return target_evaluation.evaluate(experiment, found, what, baselines=baselines, player=player).evaluation


def _own_player(
    config: Config, agent: str | OwnAgent | None, policy: Sampler | None, temperature: float
) -> Player | None:
    """Who acts, where it is an object of one's own."""
    if policy is not None:
        if callable(agent) or agent not in (None, "policy"):
            raise ConfigError("a policy is asked by the model's agent, so agent has no effect", hint="leave one out")
        make = players.model_agents(config, policy, config.model_name, temperature=temperature, strict=True)
        return Player(policy.capabilities.name, make)
    if agent is None or isinstance(agent, str):
        return None
    own: OwnAgent = agent
    return Player(getattr(own, "__name__", type(own).__name__), lambda spec, env: own(env))


class _Watching:
    """A watcher that hands each step's metrics on."""

    def __init__(self, on_step: OnStep | None) -> None:
        self._on_step = on_step

    def note(self, text: str) -> None:
        """Logged: a program decides what is shown."""
        logger.info(text)

    def progress(self, what: str, total: int, *, part: bool = False) -> AbstractContextManager[Progress | None]:
        """Nothing is drawn."""
        return nullcontext()

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Call ``on_step``; what it raises ends the run, and is no fault of a sink."""
        if self._on_step is None:
            return
        try:
            self._on_step(step, values)
        except (OSError, ValueError) as error:
            raise RuntimeError(f"on_step failed at step {step}: {error}") from error

    def event(self, kind: str, data: Mapping[str, Any]) -> None:
        """Events stand in the run's events.jsonl."""

    def close(self) -> None:
        """Nothing is held."""
