"""A pod of the local API server: our session server over a simulated device, started as its manifest says."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cuarl.env.base import Env
from cuarl.env.pods.devices import SESSION_TYPES
from cuarl.env.pods.hosted import HostedSession
from cuarl.env.pods.manifest import PORT
from cuarl.env.pods.server import SessionServer
from cuarl.env.pods.session import TOKEN
from cuarl.env.pods.words import SCREENSHOT
from cuarl.tasks.source import load

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Message

MISSING = "missing"
"""An image of this name can't be pulled."""


def device_of(manifest: Mapping[str, Any]) -> tuple[str, str | None]:
    """Device and task that the container's arguments ask for. Raises ValueError where they ask for none."""
    args = [str(arg) for arg in manifest["spec"]["containers"][0].get("args") or ()]
    if args[:2] != ["sessions", "serve"] or len(args) < 3:
        raise ValueError("spec.containers[0].args: this server runs only `sessions serve DEVICE`")
    if args[2] not in SESSION_TYPES:
        raise ValueError(f"spec.containers[0].args: there is no device {args[2]}")
    return args[2], args[args.index("--task") + 1] if "--task" in args else None


class FakePod:
    """One pod. Its device starts with the first request."""

    def __init__(
        self, manifest: Mapping[str, Any], namespace: str, runs_at: float, make: Callable[[str], Env], forgetful: bool
    ) -> None:
        self.manifest, self.namespace, self.name = manifest, namespace, str(manifest["metadata"]["name"])
        self.labels: Mapping[str, str] = manifest["metadata"].get("labels") or {}
        self.uid, self._runs_at, self._forgetful = str(uuid.uuid4()), runs_at, forgetful
        self._made = datetime.now(UTC).isoformat(timespec="seconds")
        spec = manifest["spec"]
        container = spec["containers"][0]
        self._image = str(container["image"])
        self._prepares = str((spec.get("initContainers") or [{"image": ""}])[0]["image"])
        """Image of what runs before the session, if anything does."""
        self.port = int((container.get("ports") or [{}])[0].get("containerPort", PORT))
        self._ends_at = runs_at + float(spec.get("activeDeadlineSeconds", float("inf")))
        device, self._task = device_of(manifest)
        given = {one["name"]: one.get("value") for one in container.get("env") or ()}
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
            task_id, self._task = self._task, None
            await self._session.reset(load([task_id], role=None).tasks[0].instantiate(0), 0)
        if path == "act" and request.query_params.get("action_type") != SCREENSHOT:
            self.asked.add(request.headers.get("idempotency-key", ""))
        kept = [
            (name, value) for name, value in request.headers.raw
            if not (self._forgetful and name == b"idempotency-key") and name != b"authorization"
        ]  # fmt: skip
        if self._own_token:
            kept.append((TOKEN.lower().encode(), self._own_token.encode()))
        scope = {**request.scope, "path": f"/{path}", "raw_path": f"/{path}".encode(), "headers": kept, "root_path": ""}
        replied: list[Message] = []

        async def send(message: Message) -> None:
            replied.append(message)

        await self._app(scope, request.receive, send)
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
