"""Agent programs for commands: the command line that plays an episode, and the policy that it asks, served."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend, unsolved
from cuarl.env.base import Env
from cuarl.env.leases import Ledger
from cuarl.env.program.options import Options
from cuarl.errors import ConfigError, PrerequisiteError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance
from cuarl.workflow.served_policy import Hosts, address

_HINT = "--program-command 'python my_agent.py'"


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """A run of the program for each episode.

    Raises ConfigError for tasks of another environment, PrerequisiteError for a program that is not there.
    """
    from cuarl.integrations.program import ProgramEnv

    stranger = next((task for task in tasks if task.env != "program"), None)
    if stranger is not None:
        raise ConfigError(f"task {stranger.id} is for {stranger.env}, and not for a program", where="--env program")
    command, ledger = _command(options), Ledger(settings.sessions_folder)
    hosts = Hosts(address(options.listen, options.url, options.picture_hosts, settings))

    async def make(task: TaskInstance) -> Env:
        return ProgramEnv(command, ledger, hosts.talk)

    return Backend(
        make,
        close=hosts.close,
        at_most=options.at_once,
        in_step=False,
        alone="its programs ask the process that runs the episodes, and are processes themselves",
        may_solve=unsolved,
    )


def _command(options: Options) -> list[str]:
    if options.command is None:
        raise ConfigError("there is no agent program named", where="--env program", hint=_HINT)
    try:
        command = shlex.split(options.command)
    except ValueError as error:
        raise ConfigError(f"can't be read as a command line: {error}", where="--program-command", hint=_HINT) from None
    if not command:
        raise ConfigError("there is no agent program named", where="--program-command", hint=_HINT)
    if shutil.which(command[0]) is None:
        raise PrerequisiteError(f"there is no program {command[0]}", where="--program-command", hint=_HINT)
    return command
