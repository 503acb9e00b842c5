"""A pod of the local API server: our session server over a simulated device, started as its manifest says."""

from __future__ import annotations

import math
import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cuarl.env.base import Env
from cuarl.env.pods.actions import SCREENSHOT
from cuarl.env.pods.devices import SESSION_TYPES
from cuarl.env.pods.hosted import HostedSession
from cuarl.env.pods.manifest import PORT
from cuarl.env.pods.server import SessionServer
from cuarl.env.pods.session import TOKEN
from cuarl.tasks.source import load
from cuarl.tasks.task import Task
from cuarl.web.refusal import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Message

MISSING = "missing"
"""An image of this name can't be pulled."""


class _Part(BaseModel):
    """Part of a manifest in Kubernetes' spelling; what this server has no use for is left aside."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)


class _Metadata(_Part):
    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")
    labels: Mapping[str, str] | None = None


class _Port(_Part):
    container_port: int = Field(ge=1, le=65535)


class _Variable(_Part):
    name: str
    value: str | None = None


class _Container(_Part):
    image: str
    args: tuple[str, ...] = ()
    ports: tuple[_Port, ...] = ()
    env: tuple[_Variable, ...] = ()


class _Spec(_Part):
    containers: Annotated[tuple[_Container, ...], Field(min_length=1)]
    init_containers: tuple[_Container, ...] = ()
    active_deadline_seconds: float | None = Field(default=None, ge=0, le=1e9)


class _Manifest(_Part):
    metadata: _Metadata
    spec: _Spec


def device_of(args: Sequence[str]) -> tuple[str, Task | None]:
    """Device and task that a container's arguments ask for. Raises ValueError, TaskError."""
    if tuple(args[:2]) != ("sessions", "serve") or len(args) < 3:
        raise ValueError("spec.containers[0].args: this server runs only `sessions serve DEVICE`")
    if args[2] not in SESSION_TYPES:
        raise ValueError(f"spec.containers[0].args: there is no device {args[2][:40]}")
    if "--task" not in args[:-1]:
        return args[2], None
    (task,) = load([args[args.index("--task") + 1]], role=None).tasks
    return args[2], task


class FakePod:
    """One pod. Its device starts with the first request.

    Raises ValueError, TaskError for a manifest that means none.
    """

    def __init__(
        self, manifest: Mapping[str, Any], namespace: str, runs_at: float, make: Callable[[str], Env], forgetful: bool
    ) -> None:
        read = _Manifest.model_validate(manifest)
        container, spec = read.spec.containers[0], read.spec
        self.manifest, self.namespace, self.name = manifest, namespace, read.metadata.name
        self.labels: Mapping[str, str] = read.metadata.labels or {}
        self.uid, self._runs_at, self._forgetful = str(uuid.uuid4()), runs_at, forgetful
        self._made = datetime.now(UTC).isoformat(timespec="seconds")
        self._image, self._prepares = container.image, spec.init_containers[0].image if spec.init_containers else ""
        """Of the session, and of what runs before it, if anything does."""
        self.port = container.ports[0].container_port if container.ports else PORT
        self._ends_at = math.inf if spec.active_deadline_seconds is None else runs_at + spec.active_deadline_seconds
        device, self._task = device_of(container.args)
        given = {one.name: one.value for one in container.env}
        self._session = HostedSession(lambda: make(device))
        token = given.get("CUARL_SESSION_TOKEN") or ""
        # the protocol's own pods ask for no token, but are reached through a proxy alone
        self._own_token = "" if token else secrets.token_hex(16)
        server = SessionServer(self._session, device, token or self._own_token, local=False)
        self._app, self._killed = server.app(), ""
        self.halves = 0
        """So many pictures to come are cut in half."""
        self.asked: set[str] = set()
        """Keys of the requests for an action that came through."""

    @property
    def secured(self) -> bool:
        """Whether its session asks for a token of its manifest's."""
        return not self._own_token

    @property
    def acted(self) -> int:
        """Actions carried out."""
        return self._session.acted

    @property
    def answers(self) -> bool:
        """Whether its container runs."""
        return self._phase() == "Running"

    def kill(self, reason: str) -> None:
        """End its container, as Kubernetes does for want of memory (``OOMKilled``) or room (``Evicted``)."""
        self._killed = reason

    async def ask(self, request: Request, path: str) -> Response:
        """Hand a request on to its server."""
        from starlette.responses import Response

        if self._task is not None:  # the task that the container was started with
            task, self._task = self._task, None
            await self._session.reset(task.instantiate(0), 0)
        if path == "act" and request.query_params.get("action_type") != SCREENSHOT:
            self.asked.add(request.headers.get("idempotency-key", ""))
        kept = [
            (name, value)
            for name, value in request.headers.raw
            if not (self._forgetful and name == b"idempotency-key") and name != b"authorization"
        ]
        if self._own_token:
            kept.append((TOKEN.lower().encode(), self._own_token.encode()))
        scope = {**request.scope, "path": f"/{path}", "raw_path": f"/{path}".encode(), "headers": kept, "root_path": ""}
        replied: list[Message] = []

        async def send(message: Message) -> None:
            replied.append(message)

        await self._app(scope, request.receive, send)
        if not replied:
            raise Refusal("the client has left", status=408)
        start, *rest = replied
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        body = b"".join(part.get("body", b"") for part in rest)
        if self.halves and path == "act":
            self.halves -= 1
            body = body[: len(body) // 2]
            headers["content-length"] = str(len(body))
        return Response(body, start["status"], headers)

    async def close(self) -> None:
        """Release its device."""
        await self._session.close()

    def shown(self) -> dict[str, Any]:
        """The pod as the API server shows it."""
        metadata = {
            **self.manifest["metadata"],
            "namespace": self.namespace,
            "uid": self.uid,
            "creationTimestamp": self._made,
        }
        return {**self.manifest, "metadata": metadata, "status": self._status()}

    def _phase(self) -> str:
        now = time.monotonic()
        if self._killed or now >= self._ends_at:
            return "Failed"
        return "Pending" if MISSING in self._image + self._prepares or now < self._runs_at else "Running"

    def _status(self) -> dict[str, Any]:
        phase = self._phase()
        ready = {"type": "Ready", "status": str(phase == "Running")}
        status: dict[str, Any] = {"phase": phase, "conditions": [{"type": "PodScheduled", "status": "True"}, ready]}
        if phase == "Failed" and not self._killed:
            status |= {
                "reason": "DeadlineExceeded",
                "message": "Pod was active on the node longer than the specified deadline",
            }
        if self._prepares:
            waits = MISSING in self._prepares
            init = (
                {"waiting": _no_image(self._prepares)}
                if waits
                else {"terminated": {"exitCode": 0, "reason": "Completed"}}
            )
            status["initContainerStatuses"] = [{"name": "prepare", "ready": not waits, "state": init}]
        status["containerStatuses"] = [{"name": "session", "ready": phase == "Running", "state": self._state(phase)}]
        return status

    def _state(self, phase: str) -> dict[str, Any]:
        if phase == "Failed":
            return {"terminated": {"exitCode": 137, "reason": self._killed or "Error"}}
        if phase == "Running":
            return {"running": {"startedAt": self._made}}
        if MISSING in self._prepares:
            return {"waiting": {"reason": "PodInitializing"}}
        if MISSING in self._image:
            return {"waiting": _no_image(self._image)}
        return {"waiting": {"reason": "ContainerCreating"}}


def _no_image(image: str) -> dict[str, str]:
    return {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
