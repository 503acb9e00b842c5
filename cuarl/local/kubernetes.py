"""A local Kubernetes API server whose pods are simulated devices, to try ``--env pods`` without a cluster.

    cuarl local kubernetes --port 26443 --token any-token

It speaks the real paths (pods, their proxy, access reviews, enough discovery for kubectl) and runs our own session
server in every pod. Below ``/proxy/ID`` it is also the sessions' proxy, which asks for no token. ``--refuse``,
``--break``, ``--drop`` and ``--start-seconds`` misbehave as in ``cuarl local gbox``. ``GET /fake`` counts: pods made,
live, and most live at once, actions carried out, actions carried out twice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cuarl.env.base import Env
from cuarl.env.leases import Ledger
from cuarl.env.pods.devices import make
from cuarl.env.pods.manifest import SESSION
from cuarl.env.sim.devices import make_sim
from cuarl.local.faults import Faults, Handler
from cuarl.local.pod import FakePod
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, understood
from cuarl.web.rules import Rules, Token

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

RESOURCES = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {
            "name": "pods",
            "singularName": "pod",
            "namespaced": True,
            "kind": "Pod",
            "shortNames": ["po"],
            "verbs": ["create", "delete", "get", "list"],
        }
    ],
}
REASONS = {401: "Unauthorized", 404: "NotFound", 409: "AlreadyExists", 422: "Invalid", 429: "TooManyRequests",
           500: "InternalError", 503: "ServiceUnavailable"}  # fmt: skip
STAND_INS = {"linux": "desktop"}
"""What is simulated in place of devices that need more than this process."""
DESKTOP = (640, 480)
"""Screen of a real desktop."""


class FakeKubernetes:
    """The cluster's pods and counts, and its application. ``token`` is what clients must send.

    ``forgetful`` sessions don't know requests that come twice, as the protocol's own servers don't. With ``desktops``
    sessions of type linux are real desktops of this machine, noted there.
    """

    def __init__(
        self,
        token: str,
        *,
        profile: str = "small",
        faults: Faults | None = None,
        forgetful: bool = False,
        desktops: Ledger | None = None,
    ) -> None:
        self._bearer, self.profile, self.faults, self.forgetful = Token(token), profile, faults or Faults(), forgetful
        self._desktops = desktops
        self.pods: dict[tuple[str, str], FakePod] = {}
        self.past: list[FakePod] = []
        """Those that were deleted."""
        self.forbidden: set[tuple[str, str]] = set()
        """Verbs and resources that an access review says no to."""
        self._peak = 0

    def expire(self, token: str) -> None:
        """Have clients send another token from now on."""
        self._bearer.value = token

    def counts(self) -> dict[str, int]:
        """Pods made, live and most live at once, actions carried out, and those carried out more than once."""
        pods = [*self.pods.values(), *self.past]
        return {
            "made": len(pods),
            "live": len(self.pods),
            "peak": self._peak,
            "actions": sum(pod.acted for pod in pods),
            "doubled": sum(pod.acted - len(pod.asked) for pod in pods if pod.acted > len(pod.asked)),
        }

    def app(self) -> Starlette:
        """The application."""
        from starlette.routing import Route

        pods = "/api/v1/namespaces/{namespace}/pods"
        reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

        async def counted(request: Request) -> Response:
            return json_response(self.counts())

        def fixed(body: Mapping[str, Any]) -> Handler:
            async def answer(request: Request) -> Response:
                return json_response(body)

            return answer

        faulty = self.faults.around
        routes = [
            Route("/fake", counted),
            Route("/version", fixed({"major": "1", "minor": "32", "gitVersion": "v1.32.0-fake"})),
            Route("/api", faulty(fixed({"kind": "APIVersions", "versions": ["v1"]}))),
            Route("/apis", faulty(fixed({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}))),
            Route("/api/v1", faulty(fixed(RESOURCES))),
            Route(reviews, faulty(self._review), methods=["POST"]),
            Route(pods, faulty(self._create), methods=["POST"]),
            Route(pods, faulty(self._list)),
            Route(pods + "/{name}:{port}/proxy/{path:path}", faulty(self._proxy), methods=["GET", "POST"]),
            Route(pods + "/{name}", faulty(self._get)),
            Route(pods + "/{name}", faulty(self._delete), methods=["DELETE"]),
            Route("/proxy/{session}", self._slash),
            Route("/proxy/{session}/{path:path}", faulty(self._session), methods=["GET", "POST"]),
        ]
        return application(routes, Rules(say=status, token=self._bearer, open=_open, body_bytes=4 << 20))

    # --- pods ---------------------------------------------------------------------------------------------------------

    async def _create(self, request: Request) -> Response:
        manifest = await json_object(request)
        namespace = request.path_params["namespace"]
        runs_at = time.monotonic() + self.faults.random.random() * self.faults.start_s
        with understood(422):
            made = FakePod(manifest, namespace, runs_at, self._device, self.forgetful)
        if self._desktops is not None and not made.secured:
            raise Refusal("a real desktop needs the variable CUARL_SESSION_TOKEN in its container's env", status=422)
        if (namespace, made.name) in self.pods:
            raise Refusal(f'pods "{made.name}" already exists', status=409)
        self.pods[namespace, made.name] = made
        self._peak = max(self._peak, len(self.pods))
        return json_response(made.shown(), 201)

    def _device(self, session_type: str) -> Env:
        if session_type == "linux" and self._desktops is not None:
            return make(session_type, self._desktops, screen=DESKTOP)
        return make_sim(STAND_INS.get(session_type, session_type), self.profile, clutter=0.0)

    async def _list(self, request: Request) -> Response:
        selector = request.query_params.get("labelSelector", "")
        with understood():
            wanted = dict(pair.split("=", 1) for pair in selector.split(",") if pair)
        found = [
            pod.shown()
            for (namespace, _), pod in self.pods.items()
            if namespace == request.path_params["namespace"] and wanted.items() <= pod.labels.items()
        ]
        return json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found})

    async def _get(self, request: Request) -> Response:
        return json_response(self._pod(request).shown())

    async def _delete(self, request: Request) -> Response:
        found = self._pod(request)
        body = await json_object(request, empty=True)
        with understood():
            wanted = (body.get("preconditions") or {}).get("uid")
        if wanted not in (None, found.uid):
            raise Refusal(
                f"the UID in the precondition ({str(wanted)[:80]}) does not match the UID in record ({found.uid})",
                status=409,
            )
        del self.pods[found.namespace, found.name]
        self.past.append(found)
        await found.close()
        shown = found.shown()
        shown["metadata"]["deletionTimestamp"] = datetime.now(UTC).isoformat(timespec="seconds")
        return json_response(shown)

    async def _review(self, request: Request) -> Response:
        body = await json_object(request)
        with understood():
            asked = body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
            allowed = (str(asked["verb"]), resource) not in self.forbidden
        return json_response({**body, "status": {"allowed": allowed}}, 201)

    # --- their sessions -----------------------------------------------------------------------------------------------

    async def _proxy(self, request: Request) -> Response:
        found = self._pod(request)
        if not found.answers or request.path_params["port"] != str(found.port):
            raise Refusal("error trying to reach service: dial tcp 10.0.0.1: connect: connection refused", status=503)
        return await found.ask(request, request.path_params["path"])

    async def _session(self, request: Request) -> Response:
        """As the protocol's proxy answers: found by its label, and no word about why not."""
        from starlette.responses import PlainTextResponse

        wanted = request.path_params["session"]
        found = next((pod for pod in self.pods.values() if pod.labels.get(SESSION) == wanted), None)
        if found is None:
            return PlainTextResponse("Pod not found", 404)
        if not found.answers:
            return PlainTextResponse("Bad gateway", 502)
        return await found.ask(request, request.path_params["path"])

    async def _slash(self, request: Request) -> Response:
        from starlette.responses import RedirectResponse

        return RedirectResponse(f"{request.url.path}/", 307)

    def _pod(self, request: Request) -> FakePod:
        name = request.path_params["name"]
        found = self.pods.get((request.path_params["namespace"], name))
        if found is None:
            raise Refusal(f'pods "{name[:80]}" not found', status=404)
        return found


def status(refusal: Refusal) -> Mapping[str, Any]:
    """A refusal in the words of Kubernetes."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.what,
        "reason": REASONS.get(refusal.status, "BadRequest"),
        "code": refusal.status,
    }


def _open(path: str) -> bool:
    """What needs no token of the API server's: what tells nothing, and the sessions' proxy."""
    return path in ("/fake", "/version") or path.startswith("/proxy/")
