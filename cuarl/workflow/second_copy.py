"""A second copy of the policy that samples on a device of its own, while training goes in turn with collecting."""

from __future__ import annotations

from cuarl.config.schema import ExperimentConfig
from cuarl.policy.twin import follow, twin
from cuarl.train.batch import Batch
from cuarl.train.learner import Learner
from cuarl.train.loop import Collect
from cuarl.workflow import players
from cuarl.workflow.from_config import check_alone
from cuarl.workflow.players import Player


class SecondCopy:
    """The copy, which is given the trained weights before each step's episodes."""

    def __init__(self, config: ExperimentConfig, learner: Learner) -> None:
        """``learner`` must have been restored, if there is something to restore. Raises ConfigError for several processes."""
        check_alone(config, learner.accelerator.num_processes)
        self._config, self._policy = config, learner.policy
        self._twin = twin(learner.policy, config.sampler_device)

    def player(self) -> Player:
        """Who practises."""
        return players.in_process(self._config, self._twin, temperature=self._config.temperature, strict=True)

    def collector(self, practice: Collect) -> Collect:
        """``practice`` with the copy brought up to date before each step."""

        async def collect(step: int, policy_version: int) -> Batch:
            follow(self._twin, self._policy, policy_version)
            return await practice(step, policy_version)

        return collect
