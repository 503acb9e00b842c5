"""Every exception that cuarl raises on purpose.

    CuarlError                      exit 1   failed while working
    ├── ConfigError                 exit 2   wrong option, key, preset or combination; nothing was started
    ├── TaskError                   exit 2   broken task file, unknown task, empty selection
    ├── RunExists                   exit 2   the run directory is taken
    ├── ResumeMismatch              exit 2   the configuration differs from the run's
    ├── BarMissed                   exit 3   it ran, but the asked-for bar was not met
    ├── PrerequisiteError           exit 4   something must be installed, started or configured first
    │   ├── MissingExtra            exit 4
    │   ├── MissingSecret           exit 4
    │   └── DatabaseBehind          exit 4
    ├── RolloutError                exit 1   one boundary of an episode failed; becomes a stored ``Failure``
    │   ├── EnvError                         the device or its transport
    │   ├── SamplerError                     the policy or its endpoint
    │   ├── AgentError                       prompt building or parsing machinery (not the model's own mistakes)
    │   └── RewardError                      validator or reward function
    ├── StoreError                  exit 1
    ├── CheckpointError             exit 1
    └── TrainError                  exit 1
        └── PeerLost                exit 1   another process of the run, or its machine, is gone

An error is three short lines for a person: what happened with the actual value, where, and how to fix it as a
command. All classes pickle, so they cross process boundaries unchanged.
"""

from __future__ import annotations

from typing import ClassVar


class CuarlError(Exception):
    """Base of all errors raised on purpose: ``what`` happened, ``where``, and a ``hint`` that fixes it."""

    exit_code: ClassVar[int] = 1
    boundary: ClassVar[str] = "cuarl"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what, self.where, self.hint = what, where, hint

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  at: {self.where}")
        if self.hint:
            lines.append(f"  fix: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.hint))


def _rebuild(cls: type[CuarlError], what: str, where: str | None, hint: str | None) -> CuarlError:
    return cls(what, where=where, hint=hint)


class ConfigError(CuarlError):
    """An option, key, preset or combination is wrong. Nothing was started."""

    exit_code = 2


class TaskError(CuarlError):
    """A task file is broken, a task is unknown, or a selection is empty. Nothing was started."""

    exit_code = 2


class RunExists(CuarlError):
    """The run directory is already in use."""

    exit_code = 2


class ResumeMismatch(CuarlError):
    """The configuration given differs from the one the run was started with."""

    exit_code = 2


class BarMissed(CuarlError):
    """The work was done, but the result is below the bar that was asked for."""

    exit_code = 3


class PrerequisiteError(CuarlError):
    """Something outside cuarl must be installed, started or configured first."""

    exit_code = 4


class MissingExtra(PrerequisiteError):
    """An optional dependency is not installed."""


class MissingSecret(PrerequisiteError):
    """A credential is not set."""


class DatabaseBehind(PrerequisiteError):
    """The database schema is older than this version of cuarl."""


class RolloutError(CuarlError):
    """One boundary of an episode failed. The episode runner turns it into a stored ``Failure``."""

    boundary = "rollout"


class EnvError(RolloutError):
    """The device or its transport failed."""

    boundary = "env"


class SamplerError(RolloutError):
    """The policy or its endpoint failed."""

    boundary = "sampler"


class AgentError(RolloutError):
    """Building a prompt failed (a model's malformed output is not an error but a ``ParseError`` value)."""

    boundary = "agent"


class RewardError(RolloutError):
    """A validator or reward function failed, so there is no verdict."""

    boundary = "reward"


class StoreError(CuarlError):
    """The trajectory store could not be read or written."""


class CheckpointError(CuarlError):
    """A checkpoint is missing, incomplete or does not fit."""


class TrainError(CuarlError):
    """Training cannot go on."""


class PeerLost(TrainError):
    """Another process of the run, or the machine that it ran on, is gone."""
