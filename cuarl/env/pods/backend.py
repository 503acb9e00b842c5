"""From a run's options and this machine's settings to pods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from cuarl.config.rules import refuse_idle
from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.env.base import Env
from cuarl.env.http import Service
from cuarl.env.leases import Ledger
from cuarl.env.plans.devices import read_plan
from cuarl.env.pods.client import Pods
from cuarl.env.pods.cluster import Where, find
from cuarl.env.pods.devices import KINDS
from cuarl.env.pods.env import Connect, PodEnv
from cuarl.env.pods.manifest import Template, load, pod_name
from cuarl.env.pods.options import Options
from cuarl.env.pods.plan import IN_SESSIONS
from cuarl.env.pods.session import Session
from cuarl.env.sim.devices import SIMULATED
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.tasks.task import Task, TaskInstance


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise ConfigError for a task that no session can run, TaskError for a plan that none can follow."""
    for task in tasks:
        if task.env not in KINDS:
            raise ConfigError(
                f"task {task.id} is for {task.env}, and a pod runs those for {', '.join(KINDS)}",
                where="--env pods",
                hint=f"cuarl tasks show {task.id}",
            )
        if task.env == "pods" and task.preset:
            raise ConfigError(
                f"task {task.id} has a preset, which only cuarl's own session server can set up",
                where="--env pods",
                hint="leave the preset out, or give the task env: linux, desktop or phone",
            )
        if task.env == "pods":
            read_plan(task.instantiate(0).plan, IN_SESSIONS)


def check_options(options: Options, tasks: Sequence[Task]) -> None:
    """Raise ConfigError for an option that neither ``tasks`` (all of a run's) nor the manifest have a place for."""
    named = _template(options).placeholders
    for placeholder in ("image", "session_type"):
        if placeholder not in named:
            refuse_idle(options, [placeholder], f"the manifest does not name ${{{placeholder}}}")
    if all(KINDS[task.env].own for task in tasks):
        refuse_idle(options, ["session_type"], "the tasks name their device")


def _template(options: Options) -> Template:
    """Raises ConfigError for a manifest that can't be used."""
    return load(Path(options.manifest) if options.manifest else None)


def pods(settings: Settings, namespace: str | None) -> Pods:
    """The cluster's pods. Raises PrerequisiteError where no cluster is set."""
    return Pods(find(Where.of(settings)), namespace)


class Ways:
    """How sessions are reached: through a proxy of their own if there is one, else through the API server's."""

    def __init__(self, pods: Pods, proxy_url: str | None, port: int) -> None:
        self._pods, self._port = pods, port
        self._proxy = Service("the sessions' proxy", proxy_url, timeout_s=30.0) if proxy_url else None

    def connect(self, kind: str) -> Connect:
        """For tasks whose ``env`` is ``kind``: from a session's id and token to its server."""
        own = KINDS[kind].own

        def connect(session_id: str, token: str) -> Session:
            if self._proxy is not None:
                return Session(self._proxy, f"proxy/{session_id}", token, own=own)
            path = self._pods.proxied(pod_name(session_id), self._port)
            return Session(self._pods.service, path, token, own=own)

        return connect

    async def close(self) -> None:
        """Close the connections."""
        await self._pods.close()
        if self._proxy is not None:
            await self._proxy.close()


def backend(options: Options, config: ExperimentConfig, tasks: Sequence[Task], settings: Settings) -> Backend:
    """Checks the tasks and the machine, and raises before anything starts."""
    check_tasks(tasks)
    template = _template(options)
    cluster, ledger = pods(settings, options.namespace), Ledger(settings.sessions_folder)
    ways = Ways(cluster, settings.pods_proxy_url, template.port)
    starting: list[anyio.CapacityLimiter] = []  # made where the event loop is

    async def start() -> None:
        starting[:] = [anyio.CapacityLimiter(options.starting)]

    async def make(task: TaskInstance) -> Env:
        kind = task.env
        return PodEnv(cluster, ledger, ways.connect(kind), options, template, kind, starting[0], task.plan)

    return Backend(make, start=start, close=ways.close, at_most=options.at_once, may_solve=_may_solve)


def _may_solve(task: Task) -> bool:
    """The simulated devices have planners; others follow plans."""
    return bool(task.plan) or task.env in SIMULATED
