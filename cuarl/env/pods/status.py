"""What the API server says of a pod, in words: pure functions of its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

HOPELESS = frozenset(
    {
        "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
        "RunContainerError", "CrashLoopBackOff",
    }
)  # fmt: skip
"""Reasons why a container waits that time does not mend. (A first ErrImagePull is tried again by Kubernetes.)"""


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether its readiness probe has passed."""
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in _conditions(pod))


def trouble(pod: Mapping[str, Any]) -> str:
    """Why it will not come up, or is up no more; empty while there is hope."""
    status = pod.get("status") or {}
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return "it is being deleted"
    if status.get("phase") in ("Failed", "Succeeded"):
        reasons = [status.get("reason"), *(_reason(state) for kind, state in _states(pod) if kind == "terminated")]
        why = ", ".join(dict.fromkeys(str(reason) for reason in reasons if reason))
        return f"it has {'failed' if status['phase'] == 'Failed' else 'ended'} ({why or 'no reason given'})"
    for kind, state in _states(pod):
        if kind == "terminated" or (kind == "waiting" and state.get("reason") in HOPELESS):
            return f"its container can't run: {_reason(state)}{_message(state)}"
    return ""


def stage(pod: Mapping[str, Any]) -> str:
    """How far it has come, for whoever waits for it."""
    for one in _conditions(pod):
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"it is not placed on a node{_message(one)}"
    waiting = [f"{_reason(state)}{_message(state)}" for kind, state in _states(pod) if kind == "waiting"]
    phase = (pod.get("status") or {}).get("phase", "Pending")
    return f"its container waits: {waiting[0]}" if waiting else f"it is {str(phase).lower()}, but not ready"


def _conditions(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((pod.get("status") or {}).get("conditions") or ())


def _states(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Kind (``waiting``, ``running``, ``terminated``) and body of each container's state."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        yield from ((kind, body or {}) for kind, body in (container.get("state") or {}).items())


def _reason(state: Mapping[str, Any]) -> str:
    code = state.get("exitCode")
    return str(state.get("reason") or "no reason given") + (f" with exit code {code}" if code else "")


def _message(state: Mapping[str, Any]) -> str:
    return f": {str(state['message'])[:300]}" if state.get("message") else ""
