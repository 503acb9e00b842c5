"""From a template to the pod of one session: filled in, named, labelled with its owner, bounded in time."""

from __future__ import annotations

import copy
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from cuarl.errors import ConfigError

LEASE = "cuarl/lease"
"""Label that says whose the pod is: a random name that only its lease knows."""
OWNER = "cuarl/owner"
"""Label for people: machine and process that made the pod."""
MANAGED = "app.kubernetes.io/managed-by"
SESSION = "session-id"
"""Label by which proxies find a session's pod."""
PORT = 8000
PLACEHOLDERS = ("session_id", "session_type", "image", "token")
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """The manifest of a pod with ``${…}`` in it."""

    body: Mapping[str, Any]

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of what is put into it."""
        return frozenset(_placeholders(self.body))

    @property
    def port(self) -> int:
        """Where its session server listens: the first port that a container names, else 8000."""
        containers = self.body["spec"]["containers"]
        ports = [one.get("containerPort") for container in containers for one in container.get("ports") or ()]
        return int(next((port for port in ports if port), PORT))

    def pod(self, values: Mapping[str, str], lease: str, expires_s: int) -> dict[str, Any]:
        """The pod of the session ``values["session_id"]``, which Kubernetes ends by itself after ``expires_s``."""
        made: dict[str, Any] = copy.deepcopy(_filled(self.body, values))
        metadata, spec = made.setdefault("metadata", {}), made["spec"]
        metadata.pop("namespace", None)
        metadata["name"] = pod_name(values["session_id"])
        own = {SESSION: values["session_id"], LEASE: lease, OWNER: owner(), MANAGED: "cuarl"}
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
        spec["restartPolicy"] = "Never"
        spec["activeDeadlineSeconds"] = min(expires_s, int(spec.get("activeDeadlineSeconds") or expires_s))
        return made


def pod_name(session_id: str) -> str:
    """What the pod of a session is called."""
    return f"session-{session_id}"


def owner() -> str:
    """This process, as a label can say it."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:40].strip("-.") or "host"
    return f"{host}-{os.getpid()}"


def load(path: Path | None = None) -> Template:
    """A template from a file, or the shipped one.

    Raises ConfigError for one that is no pod, or names what is unknown.
    """
    where = str(path) if path else "cuarl/env/pods/manifest.yaml"
    try:
        text = path.read_text(encoding="utf-8") if path else _shipped()
        body = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"the manifest can't be read: {error.strerror}", where=where) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"the manifest is no YAML: {error}", where=where) from error
    problem = _problem(body)
    if problem:
        raise ConfigError(problem, where=where, hint="docs/guides/pods.md shows one")
    return Template(body)


def _shipped() -> str:
    return resources.files("cuarl.env.pods").joinpath("manifest.yaml").read_text(encoding="utf-8")


def _problem(body: Any) -> str:
    if not isinstance(body, Mapping) or body.get("kind") != "Pod" or body.get("apiVersion") != "v1":
        return "a session's manifest is one Pod of apiVersion v1"
    spec = body.get("spec")
    if not isinstance(spec, Mapping):
        return "the pod has no spec"
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers or not all(isinstance(one, Mapping) for one in containers):
        return "the pod has no spec.containers"
    if spec.get("restartPolicy", "Never") != "Never":
        return "restartPolicy must be Never: a session that starts anew has lost its screen"
    unknown = sorted(set(_placeholders(body)) - set(PLACEHOLDERS))
    if unknown:
        return f"${{{unknown[0]}}} is unknown; there are {', '.join(f'${{{name}}}' for name in PLACEHOLDERS)}"
    return ""


def _placeholders(value: Any) -> list[str]:
    if isinstance(value, str):
        return _PLACEHOLDER.findall(value)
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [name for item in inner for name in _placeholders(item)]


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """Fill in every string; after parsing, so that no value can add structure."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: values[match[1]], value)
    if isinstance(value, Mapping):
        return {key: _filled(item, values) for key, item in value.items()}
    return [_filled(item, values) for item in value] if isinstance(value, list) else value
