"""What can be chosen about pods of Kubernetes (``--env pods``).

This module is light: help and configurations import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import PositiveFloat, PositiveInt

from cuarl.config.fields import EnvOptions

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig


class Options(EnvOptions):
    """The options of ``env: pods``."""

    capacity = frozenset({"namespace", "at_once", "starting", "start_seconds", "expires_seconds"})

    type: Literal["pods"] = "pods"
    manifest: str | None = None
    """File with the manifest of a session's pod; unset means the shipped one."""
    image: str = "cuarl-session"
    """Image that the manifest names as ${image}."""
    session_type: str = "linux"
    """What the manifest names as ${session_type} for tasks whose env is pods; others name their device: phone, desktop,
    linux."""
    namespace: str | None = None
    """Namespace of the pods; unset means the one of the kubeconfig's context."""
    at_once: PositiveInt = 64
    """Most pods at the same time, within max_concurrent_rollouts; set it to what the cluster has room for."""
    starting: PositiveInt = 8
    """Most pods that are being started at the same time."""
    start_seconds: PositiveFloat = 300.0
    """How long a pod may take until its session answers."""
    expires_seconds: PositiveInt = 3600
    """When Kubernetes ends a pod by itself, whatever becomes of this process."""
    settle_ms: PositiveFloat = 300.0
    """How long a session's screen must be still after an action; twice as long is waited for a first change."""

    def problems(self, config: ExperimentConfig) -> Iterator[str]:
        """Pods that end too early."""
        if self.expires_seconds <= config.max_task_time_seconds:
            yield "env.expires_seconds must exceed max_task_time_seconds: pods would end while they are in use"
