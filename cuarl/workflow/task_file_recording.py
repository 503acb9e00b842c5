"""``cuarl tasks record``: a person works a page, a desktop or a phone, and what they did becomes a task file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuarl.agent.base import Agent, Decision
from cuarl.config import backends
from cuarl.env.base import Env
from cuarl.errors import AgentError, ConfigError, EnvError
from cuarl.human.agent import HumanAgent
from cuarl.human.session import Session
from cuarl.rollout.episode import run_episode
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.tasks.files import load_file
from cuarl.tasks.task import Task, TaskInstance
from cuarl.trajectory import Trajectory, Turn
from cuarl.types import Action, Finish, Observation, StopReason
from cuarl.workflow import environments, human, signals
from cuarl.workflow import episodes as parts
from cuarl.workflow.desktop_recording import RecordedDesktop
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.human import Page
from cuarl.workflow.page_task import page_address
from cuarl.workflow.phone_recording import RecordedPhone
from cuarl.workflow.task_recording import RecordedEnv, task_record

MOST_TURNS = 200
APPS_IN = {"linux": "ui.app", "adb": "open"}
"""Environments besides pages in which is recorded, and what of a preset says the app that a task begins with."""
Recorded = RecordedEnv | RecordedDesktop | RecordedPhone


@dataclass(slots=True)
class PlanWords:
    """In the place of a model's words: an action is what a plan can say, as it is."""

    sayable: frozenset[str]
    name: str = "plan"

    def see(self, observation: Observation, turns: Sequence[Turn]) -> None:
        """Nothing of a screen is needed."""

    def understood(self, action: Action) -> tuple[str, Action]:
        """``action`` itself. Raises AgentError if plans have no word for it."""
        if action.kind not in self.sayable:
            raise AgentError(f"a plan has no word for {action.kind}")
        return "", action

    def decision(self, task: TaskInstance, turns: Sequence[Turn], action: Action) -> Decision:
        """``action``, which nobody will imitate."""
        return Decision(action=action)


def task_to_record(what: str, goal: str, app: str | None) -> Task:
    """The task in which ``what`` is worked while it is recorded: a page, or ``linux`` or ``adb`` with ``app`` on it.

    Raises ConfigError.
    """
    if what in APPS_IN:
        preset: dict[str, Any] = {APPS_IN[what]: app} if app else {}
    elif app is not None:
        raise ConfigError("--app is for desktops and phones", hint="leave it out, or record on linux or adb")
    elif what in backends.names():
        raise ConfigError(f"nothing can be recorded in the environment {what}", hint="a page's address, linux or adb")
    else:
        preset = {"url": page_address(what)}
    env = what if what in APPS_IN else "browser"
    return Task(id="recording", description=goal, env=env, max_steps=MOST_TURNS, preset=preset)


def write_task(file: Path, task: Mapping[str, Any]) -> None:
    """Write a task file of one task, and read it. Raises TaskError if it can't be."""
    import yaml

    text = yaml.safe_dump({"tasks": [dict(task)]}, sort_keys=False, allow_unicode=True, width=110)
    file.write_text(text, encoding="utf-8")
    load_file(file)


def worked_by_hand(experiment: Experiment, task: Task, page: Page, wrap: Callable[[Any], Env]) -> Trajectory | None:
    """What a person did in the environment of ``task``, which ``wrap`` may follow; None if they gave up.

    Nothing is stored. Raises EnvError if the environment failed meanwhile, and what environments raise.
    """
    backend = environments.backend(experiment.config, [task], experiment.settings)
    session = Session(1, MOST_TURNS)
    sock, token = human.bound(page)

    async def make_env(instance: TaskInstance) -> Env:
        return wrap(await backend.make_env(instance))

    def make_agent(spec: EpisodeSpec, env: Env) -> Agent:
        return HumanAgent(session, spec, env, PlanWords(env.capabilities.actions))

    limits = replace(parts.limits(experiment.config), max_turns=MOST_TURNS, loop_threshold=sys.maxsize)
    setup = Setup(
        make_env=make_env, make_agent=make_agent, limits=limits, clock=session.clock, pausable=session.pause.bounding
    )
    spec = EpisodeSpec(task=task.instantiate(0), seed=0, sampling_seed=0, group_id="recording")

    async def work() -> Trajectory:
        async with parts.serving(backend), human.served(session, page, sock, token):
            return (await run_episode(spec, setup)).trajectory

    done = signals.run(work)
    if done.failure is not None:
        raise EnvError(done.failure.message)
    last = done.turns[-1].action if done.turns else None
    gave_up = done.stop is StopReason.CANCELLED or not (isinstance(last, Finish) and last.success)
    return None if gave_up else done


def record_task(experiment: Experiment, task: Task, page: Page, task_id: str | None) -> dict[str, Any] | None:
    """The task, as a file has it, of what a person did in the environment of ``task``; None if they gave up.

    Raises EnvError if it failed meanwhile, and what environments raise.
    """
    recorded = list[Recorded]()

    def wrap(env: Any) -> Env:
        recorded.append(_RECORDED[task.env](env))
        return recorded[-1]

    done = worked_by_hand(experiment, task, page, wrap)
    if done is None:
        return None
    (env,) = recorded
    env.end(done.answer)
    if not env.lines:
        raise ConfigError("nothing was done, so there is no plan to write", where=task.description)
    preset, checks = env.record(task, done.answer)
    return task_record(task, env.lines, preset, checks, task_id)


_RECORDED: Mapping[str, Callable[[Any], Recorded]] = {
    "browser": RecordedEnv,
    "linux": RecordedDesktop,
    "adb": RecordedPhone,
}
