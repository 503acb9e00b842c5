"""What a worker has to know to run episodes as the collector's own process would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.errors import SamplerError
from cuarl.policy.sampler import PromptTooLong, Sampler, SamplerCapabilities, SampleRequest
from cuarl.rollout.pause import clock, pausable
from cuarl.rollout.setup import MakeAgent, Observer, Setup
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.trajectory import Sampled
from cuarl.workflow import environments
from cuarl.workflow import episodes as parts
from cuarl.workflow.players import DemonstratingAgents, ModelAgents, Player


class _Nobody:
    """In place of a sampler, while agents are on their way."""

    capabilities = SamplerCapabilities(token_ids=False, logprobs=False, images=False)

    async def sample(self, request: SampleRequest) -> Sampled | PromptTooLong:
        """Nobody is there."""
        raise SamplerError("there is no sampler")

    async def close(self) -> None:
        """Nothing to release."""


NOBODY = _Nobody()


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of episodes: where they run, and who acts."""

    config: ExperimentConfig
    settings: Settings
    tasks: Sequence[Task]
    make_agent: MakeAgent
    """Without its sampler, which stays with the collector."""
    folder: str | None = None
    """Where screenshots are to be stored before they are sent; None where the collector alone can."""

    @classmethod
    def of(
        cls,
        config: ExperimentConfig,
        settings: Settings,
        tasks: Sequence[Task],
        make_agent: MakeAgent,
        folder: str | None = None,
    ) -> Work:
        """What a worker needs of all that."""
        apart = make_agent
        if isinstance(make_agent, ModelAgents):
            apart = replace(make_agent, sampler=NOBODY)
        elif isinstance(make_agent, DemonstratingAgents):
            apart = replace(make_agent, policy=None)
        return cls(config, settings, tasks, apart, folder)

    def backend(self) -> Backend:
        """Where they run."""
        return environments.backend(self.config, self.tasks, self.settings)

    def setup(self, backend: Backend, sampler: Sampler, observer: Observer) -> Setup:
        """Everything that one episode needs besides its spec."""
        made = parts.setup(self.config, backend, Player("", self._agents(sampler)))
        # the collector alone knows who takes part in a batch, and when an episode has to wait
        return replace(made, observer=observer, clock=clock, pausable=pausable)

    def _agents(self, sampler: Sampler) -> MakeAgent:
        made = self.make_agent
        return replace(made, sampler=sampler) if isinstance(made, ModelAgents) else made
