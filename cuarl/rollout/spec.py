"""What to run and within which limits: plain values, made before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuarl.errors import ConfigError
from cuarl.rollout.seeds import Purpose, environment_seed, sampling_seed
from cuarl.tasks.task import Task, TaskInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When an episode ends that does not end by itself. Times are seconds on a monotonic clock."""

    max_turns: int = 20
    """Upper bound of turns; a task's own ``max_steps`` may be lower."""
    deadline_s: float = 1800.0
    """One wall-clock budget over reset, model, steps and verdict."""
    turn_s: float = 300.0
    """Budget of one model call and its step together; passing it is the infrastructure's failure, not the policy's."""
    loop_threshold: int = 5
    """The same action on the same screen this many times is a loop."""
    max_invalid: int = 3
    """Consecutive outputs that are no action before the episode ends."""
    verdict_grace_s: float = 1.0
    """What the verdict may take beyond the deadline."""
    close_s: float = 10.0
    """What closing the environment may take, even when everything else was cancelled."""

    def __post_init__(self) -> None:
        wrong = [n for n in self.__slots__ if getattr(self, n) <= 0]
        if wrong:
            raise ConfigError(f"{wrong[0]} must be positive, not {getattr(self, wrong[0])}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """What an oracle does in an episode of a policy (``agent.guided``)."""

    share: float = 0.0
    """Probability with which it has a turn; it labels every other one."""
    first: int | None = None
    """Instead, it leads in so many turns at first, and says nothing of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSpec:
    """One episode to run."""

    task: TaskInstance
    seed: int
    """Environment seed, the same for all attempts of a group."""
    sampling_seed: int
    group_id: str
    attempt: int = 0
    run_id: str = ""
    step: int = 0
    purpose: Purpose = "rollout"
    guidance: Guidance | None = None
    """None: the agent is on its own."""

    @property
    def episode_id(self) -> str:
        """Derived, so that an episode which is run again after a crash keeps its id."""
        return f"{self.group_id}.{self.attempt}"


def plan(
    tasks: Sequence[Task],
    *,
    group_size: int,
    run_seed: int,
    prefix: str,
    run_id: str = "",
    step: int = 0,
    purpose: Purpose = "rollout",
    first_group: int = 0,
    guidance: Guidance | None = None,
) -> tuple[EpisodeSpec, ...]:
    """``group_size`` attempts at one instance of each task, in order.

    ``prefix`` must be unique to this call within the store: group ids are ``prefix.0000``, ``prefix.0001`` and so on.
    ``first_group`` numbers the first group within the run, so that a task met again later is a new instance.
    """
    specs: list[EpisodeSpec] = []
    for position, task in enumerate(tasks):
        group = first_group + position
        seed = environment_seed(run_seed, task.id, group, purpose)
        instance = task.instantiate(seed)
        specs.extend(
            EpisodeSpec(
                task=instance,
                seed=seed,
                sampling_seed=sampling_seed(run_seed, task.id, group, attempt),
                group_id=f"{prefix}.{position:04d}",
                attempt=attempt,
                run_id=run_id,
                step=step,
                purpose=purpose,
                guidance=guidance,
            )
            for attempt in range(group_size)
        )
    return tuple(specs)
