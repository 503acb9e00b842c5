"""What the API server says of a pod, in words: pure functions of its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

HOPELESS = frozenset(
    {
        "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError", "CrashLoopBackOff", "PreCreateHookError", "PostStartHookError",
        "SignatureValidationFailed",
    }
)  # fmt: skip
"""Reasons why a container waits that waiting does not end. (A first ErrImagePull is tried again by Kubernetes.)"""


class _State(NamedTuple):
    """What one container is doing."""

    who: str
    """``its container``, by name where there are several or it is one that runs before the others."""
    init: bool
    kind: str
    """``waiting``, ``running`` or ``terminated``."""
    body: Mapping[str, Any]

    @property
    def done(self) -> bool:
        """Whether it has done its part: what prepares the others is to end, with 0."""
        return self.init and self.kind == "terminated" and not self.body.get("exitCode")


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether its readiness probe has passed."""
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in _conditions(pod))


def trouble(pod: Mapping[str, Any]) -> str:
    """Why it will not come up, or is up no more; empty while there is hope."""
    status = pod.get("status") or {}
    if pod.get("metadata", {}).get("deletionTimestamp"):
        return "it is being deleted"
    states = [one for one in _states(pod) if not one.done]
    if status.get("phase") in ("Failed", "Succeeded"):
        ended = [one for one in states if one.kind == "terminated"]
        reasons = [status.get("reason"), *(f"{one.who[4:]}: " * one.init + _reason(one.body) for one in ended)]
        why = ", ".join(dict.fromkeys(str(reason) for reason in reasons if reason))
        return f"it has {'failed' if status['phase'] == 'Failed' else 'ended'} ({why or 'no reason given'})"
    for one in states:
        if one.kind == "terminated" and not one.body.get("exitCode"):
            return f"{one.who} has ended: {_reason(one.body)}{_message(one.body)}"
        if one.kind == "terminated" or (one.kind == "waiting" and one.body.get("reason") in HOPELESS):
            return f"{one.who} can't run: {_reason(one.body)}{_message(one.body)}"
    return ""


def stage(pod: Mapping[str, Any]) -> str:
    """How far it has come, for whoever waits for it."""
    for one in _conditions(pod):
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"it is not placed on a node{_message(one)}"
    states = _states(pod)
    for state in states:
        if state.kind == "waiting":
            return f"{state.who} waits: {_reason(state.body)}{_message(state.body)}"
        # the others wait for it, and it is what whoever waits wants to know of
        if state.init and state.kind == "running" and any(other.kind == "waiting" for other in states):
            return f"{state.who} is running"
    phase = (pod.get("status") or {}).get("phase", "Pending")
    return f"it is {str(phase).lower()}, but not ready"


def _conditions(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((pod.get("status") or {}).get("conditions") or ())


def _states(pod: Mapping[str, Any]) -> list[_State]:
    """Each container's state, those that run before the others first, in the order in which they are started."""
    status = pod.get("status") or {}
    found: list[_State] = []
    for init, key in ((True, "initContainerStatuses"), (False, "containerStatuses")):
        containers = status.get(key) or ()
        for container in containers:
            who = "its container"
            if init or len(containers) > 1:
                who = f"its {'init ' * init}container {container.get('name', '?')}"
            found += [_State(who, init, kind, body or {}) for kind, body in (container.get("state") or {}).items()]
    return found


def _reason(state: Mapping[str, Any]) -> str:
    code = state.get("exitCode")
    return str(state.get("reason") or "no reason given") + (f" with exit code {code}" if code else "")


def _message(state: Mapping[str, Any]) -> str:
    return f": {str(state['message'])[:300]}" if state.get("message") else ""
