"""Signing in once: a person, or a plan, does it in a browser, and what the browser has then is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cuarl import safe_text
from cuarl.agent.scripted import OracleAgent
from cuarl.env.base import Capabilities, Env
from cuarl.env.browser.storage import Storage
from cuarl.env.browser.web import WebEnv
from cuarl.errors import ConfigError, EnvError, MissingSecret
from cuarl.rollout.episode import run_episode
from cuarl.rollout.setup import Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.settings import environment, find_dotenv
from cuarl.tasks.task import Task, TaskInstance
from cuarl.types import Action, Observation, StepResult
from cuarl.workflow import environments, signals
from cuarl.workflow import episodes as parts
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.human import Page
from cuarl.workflow.page_task import page_address
from cuarl.workflow.task_file_recording import MOST_TURNS, worked_by_hand

_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


class SignInEnv:
    """A page that somebody signs in at; ``storage`` is what the browser has when they are done."""

    def __init__(self, env: WebEnv) -> None:
        self._env = env
        self._loaded = False
        self.storage: Storage | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The page's."""
        return self._env.capabilities

    @property
    def volatile(self) -> tuple[str, ...]:
        """The page's."""
        return self._env.volatile

    async def reset(self, task: TaskInstance, seed: int) -> Observation:
        """Load the page."""
        shown = await self._env.reset(task, seed)
        self._loaded = True
        return shown

    async def step(self, action: Action) -> StepResult:
        """Carry out one action."""
        return await self._env.step(action)

    async def ask_oracle(self) -> Action:
        """The plan's next action."""
        return await self._env.ask_oracle()

    async def state(self) -> Mapping[str, Any]:
        """The page's."""
        return await self._env.state()

    async def close(self) -> None:
        """Keep what the browser has, and close the page."""
        try:
            if self._loaded:
                self.storage = await self._env.storage()
        finally:
            await self._env.close()


def sign_in_task(url: str, plan: Sequence[Mapping[str, Any]]) -> Task:
    """The task in which it is done."""
    preset = {"url": page_address(url)}
    return Task(
        id="sign-in", description="Sign in.", env="browser", max_steps=MOST_TURNS, preset=preset, plan=tuple(plan)
    )


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The lines of a plan in YAML or JSON, ``$NAME`` in what is typed replaced by that variable's value, a secret.

    Raises ConfigError for a file without a plan, MissingSecret for a variable that is not set.
    """
    import yaml

    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"the plan can't be read: {error}", where=str(file)) from error
    lines = found.get("plan") if isinstance(found, dict) else found
    if not (isinstance(lines, list) and lines and all(isinstance(line, dict) for line in lines)):
        raise ConfigError(
            "there is no plan in the file",
            where=str(file),
            hint="- {type: $SHOP_PASSWORD, into: Password, submit: true}",
        )
    variables = environment(find_dotenv())
    return [{**line, "type": _filled(line["type"], variables)} if "type" in line else line for line in lines]


def by_hand(experiment: Experiment, task: Task, page: Page) -> Storage | None:
    """What the browser has when a person is done; None if they gave up. Raises EnvError."""
    made: list[SignInEnv] = []
    return made[0].storage if worked_by_hand(experiment, task, page, lambda env: _wrapped(env, made)) else None


def by_plan(experiment: Experiment, task: Task) -> Storage | None:
    """What the browser has at the end of the task's plan. Raises EnvError for a step that can't be done."""
    backend, made = environments.backend(experiment.config, [task], experiment.settings), list[SignInEnv]()

    async def make_env(instance: TaskInstance) -> Env:
        return _wrapped(await backend.make_env(instance), made)

    limits = replace(parts.limits(experiment.config), max_turns=MOST_TURNS)
    setup = Setup(make_env=make_env, make_agent=lambda spec, env: OracleAgent(env), limits=limits)
    spec = EpisodeSpec(task=task.instantiate(0), seed=0, sampling_seed=0, group_id="sign-in")

    async def work() -> str:
        async with parts.serving(backend):
            failure = (await run_episode(spec, setup)).trajectory.failure
            return failure.message if failure else ""

    if problem := signals.run(work):
        raise EnvError(problem)
    return made[0].storage


def _wrapped(env: Any, made: list[SignInEnv]) -> SignInEnv:
    made.append(SignInEnv(env))
    return made[-1]


def _filled(text: object, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if not variables.get(name):
            raise MissingSecret(f"{name} is not set", hint=f"export {name}=…, or put it into .env")
        safe_text.remember([variables[name]])
        return variables[name]

    return _NAME.sub(value, str(text))
