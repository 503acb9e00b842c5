"""A second copy of the policy that samples on a device of its own, while training goes in turn with collecting."""

from __future__ import annotations

from cuarl.config.schema import ExperimentConfig
from cuarl.policy.sampling.sampler_copy import copy_weights, sampler_copy
from cuarl.train.learner import Learner
from cuarl.train.loop import Metrics
from cuarl.train.metrics import sampling_metrics
from cuarl.workflow import players
from cuarl.workflow.from_config import check_alone
from cuarl.workflow.source import Source


def second_copy(config: ExperimentConfig, learner: Learner) -> Source:
    """The copy, which is given the trained weights before each step's episodes.

    ``learner`` must have been restored, if there is something to restore. Raises ConfigError for several processes.
    """
    check_alone(config, learner.accelerator.num_processes)
    policy = learner.policy
    copy = sampler_copy(policy, config.local_policy.sampler_device)

    async def refresh(version: int) -> None:
        copy_weights(copy, policy, version)

    async def told() -> Metrics:
        return sampling_metrics(copy.take_work())

    return Source(players.in_process(config, copy, temperature=config.temperature, strict=True), refresh, told=told)
