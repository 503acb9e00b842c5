"""Workers as a configuration asks for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from functools import partial

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.errors import ConfigError
from cuarl.rollout.setup import MakeAgent, Play
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow import environments
from cuarl.workflow.players import DemonstratingAgents, ModelAgents, ScriptedAgents
from cuarl.workflow.spread import Spread
from cuarl.workflow.workers.crew import Crew
from cuarl.workflow.workers.on_ray import RayWorkers
from cuarl.workflow.workers.processes import Processes
from cuarl.workflow.workers.work import Work


def crew(config: ExperimentConfig, settings: Settings) -> Crew | None:
    """The workers that a configuration asks for, none of them started; None where episodes run in this process."""
    if config.workers is None:
        return None
    if config.workers.isdecimal():
        return Crew(Processes(int(config.workers), settings))
    count, _, place = config.workers.rpartition("@")
    return Crew(RayWorkers(None if place == "ray" else place, int(count) if count else None))


@asynccontextmanager
async def employed(crew: Crew | None) -> AsyncIterator[None]:
    """Inside, workers can be started; afterwards there are none."""
    if crew is None:
        yield
        return
    async with crew.employed():
        yield


def backend(config: ExperimentConfig, tasks: Sequence[Task], settings: Settings, crew: Crew | None) -> Backend:
    """The backend that ``config`` names, its environments made by ``crew``, which then has to be ``employed``."""
    here = environments.backend(config, tasks, settings)
    if crew is None:
        return here
    works: list[int] = []

    def play(make_agent: MakeAgent, folder: str | None) -> Play:
        if not isinstance(make_agent, ScriptedAgents | ModelAgents | DemonstratingAgents):
            raise ConfigError(
                "an agent that was given as an object acts in this process alone",
                where=f"workers {config.workers}",
                hint="leave workers out",
            )
        work = Work.of(config, settings, tasks, make_agent, folder if crew.here else None)
        works.append(crew.prepare(work))
        return partial(crew.play, works[-1], make_agent.sampler if isinstance(make_agent, ModelAgents) else None)

    async def close() -> None:
        await crew.rest(works)

    # what a judge of one's own is asked, a worker asks
    same = {field.name: getattr(here, field.name) for field in fields(Backend)}
    return Spread(**(same | {"start": crew.start, "close": close}), play=play)
