"""A local Kubernetes API server whose pods are simulated devices, to try ``--env pods`` without a cluster.

    python -m cuarl.env.pods.fake --port 26443 --token any-token

It speaks the real paths (pods, their proxy, access reviews, enough discovery for kubectl) and runs our own session server in
every pod. Below ``/proxy/ID`` it is also the sessions' proxy, which asks for no token. ``--refuse``, ``--break``, ``--drop`` and
``--start-seconds`` misbehave as in ``cuarl.env.gbox.fake``. ``GET /fake`` counts: pods made, live, and most live at once,
actions carried out, actions carried out twice.
"""

from __future__ import annotations

import argparse
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cuarl.env.base import Env
from cuarl.env.gbox.fake import Faults, dropped
from cuarl.env.leases import Ledger
from cuarl.env.pods.devices import make
from cuarl.env.pods.fake_pod import FakePod, device_of
from cuarl.env.pods.manifest import SESSION
from cuarl.env.sim.make import make_sim
from cuarl.web.listen import run

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

RESOURCES = {
    "kind": "APIResourceList", "groupVersion": "v1",
    "resources": [
        {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "shortNames": ["po"],
         "verbs": ["create", "delete", "get", "list"]}
    ],
}  # fmt: skip
REASONS = {401: "Unauthorized", 404: "NotFound", 409: "AlreadyExists", 422: "Invalid", 429: "TooManyRequests",
           500: "InternalError", 503: "ServiceUnavailable"}  # fmt: skip
STAND_INS = {"linux": "desktop"}
"""What is simulated in place of devices that need more than this process."""
DESKTOP = (640, 480)
"""Screen of a real desktop."""
Handler = Callable[["Request"], Awaitable["Response"]]


class FakeKubernetes:
    """The cluster's pods and counts, and its application. ``token`` is what clients must send.

    ``forgetful`` sessions don't know requests that come twice, as the protocol's own servers don't. With ``desktops``
    sessions of type linux are real desktops of this machine, noted there.
    """

    def __init__(
        self, token: str, *, profile: str = "small", faults: Faults | None = None, forgetful: bool = False,
        desktops: Ledger | None = None,
    ) -> None:  # fmt: skip
        self.token, self.profile, self.faults, self.forgetful = token, profile, faults or Faults(), forgetful
        self._desktops = desktops
        self.pods: dict[tuple[str, str], FakePod] = {}
        self.past: list[FakePod] = []
        """Those that were deleted."""
        self.forbidden: set[tuple[str, str]] = set()
        """Verbs and resources that an access review says no to."""
        self._peak = 0

    def counts(self) -> dict[str, int]:
        """Pods made, live and most live at once, actions carried out, and those carried out more than once."""
        pods = [*self.pods.values(), *self.past]
        return {
            "made": len(pods), "live": len(self.pods), "peak": self._peak, "actions": sum(pod.acted for pod in pods),
            "doubled": sum(pod.acted - len(pod.asked) for pod in pods if pod.acted > len(pod.asked)),
        }  # fmt: skip

    def app(self) -> Starlette:
        """The application."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        pods = "/api/v1/namespaces/{namespace}/pods"
        reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

        async def counted(request: Request) -> Response:
            return _json(self.counts())

        def fixed(body: Mapping[str, Any]) -> Handler:
            async def answer(request: Request) -> Response:
                return _json(body)

            return answer

        routes = [
            Route("/fake", counted),
            Route("/version", fixed({"major": "1", "minor": "32", "gitVersion": "v1.32.0-fake"})),
            Route("/api", self._guarded(fixed({"kind": "APIVersions", "versions": ["v1"]}))),
            Route("/apis", self._guarded(fixed({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}))),
            Route("/api/v1", self._guarded(fixed(RESOURCES))),
            Route(reviews, self._guarded(self._review), methods=["POST"]),
            Route(pods, self._guarded(self._create), methods=["POST"]),
            Route(pods, self._guarded(self._list)),
            Route(pods + "/{name}:{port:int}/proxy/{path:path}", self._guarded(self._proxy), methods=["GET", "POST"]),
            Route(pods + "/{name}", self._guarded(self._get)),
            Route(pods + "/{name}", self._guarded(self._delete), methods=["DELETE"]),
            Route("/proxy/{session}", self._slash),
            Route("/proxy/{session}/{path:path}", self._faulty(self._session), methods=["GET", "POST"]),
        ]
        return Starlette(routes=routes)

    # --- what every request goes through -----------------------------------------------------------------------------

    def _guarded(self, handle: Handler) -> Handler:
        faulty = self._faulty(handle)

        async def guarded(request: Request) -> Response:
            given = request.headers.get("authorization", "").encode()
            if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
                return _status(401, "Unauthorized")
            return await faulty(request)

        return guarded

    def _faulty(self, handle: Handler) -> Handler:
        async def faulty(request: Request) -> Response:
            fault, carried_out = self.faults.draw()
            if carried_out:
                reply = await handle(request)
            if fault == "refuse":
                return _status(429, "too many requests, please try again later", {"Retry-After": "0.05"})
            if fault == "break":
                return _status(500, "an error on the server has prevented the request from succeeding")
            return dropped() if fault == "drop" else reply

        return faulty

    # --- pods ----------------------------------------------------------------------------------------------------------

    async def _create(self, request: Request) -> Response:
        manifest = await request.json()
        namespace, name = request.path_params["namespace"], manifest["metadata"]["name"]
        if (namespace, name) in self.pods:
            return _status(409, f'pods "{name}" already exists')
        try:
            device_of(manifest)
        except ValueError as error:
            return _status(422, str(error))
        runs_at = time.monotonic() + self.faults.random.random() * self.faults.start_s
        self.pods[namespace, name] = made = FakePod(manifest, namespace, runs_at, self._device, self.forgetful)
        self._peak = max(self._peak, len(self.pods))
        return _json(made.shown(), 201)

    def _device(self, session_type: str) -> Env:
        if session_type == "linux" and self._desktops is not None:
            return make(session_type, self._desktops, screen=DESKTOP)
        return make_sim(STAND_INS.get(session_type, session_type), self.profile, clutter=0.0)

    async def _list(self, request: Request) -> Response:
        wanted = dict(pair.split("=", 1) for pair in request.query_params.get("labelSelector", "").split(",") if pair)
        found = [
            pod.shown()
            for (namespace, _), pod in self.pods.items()
            if namespace == request.path_params["namespace"] and wanted.items() <= pod.labels.items()
        ]
        return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found})

    async def _get(self, request: Request) -> Response:
        found = self._pod(request)
        return _json(found.shown()) if found else _missing(request)

    async def _delete(self, request: Request) -> Response:
        found = self._pod(request)
        if found is None:
            return _missing(request)
        body = await request.body()
        wanted = ((await request.json()).get("preconditions") or {}).get("uid") if body else None
        if wanted not in (None, found.uid):
            return _status(
                409, f"the UID in the precondition ({wanted}) does not match the UID in record ({found.uid})"
            )
        del self.pods[found.namespace, found.name]
        self.past.append(found)
        await found.close()
        shown = found.shown()
        shown["metadata"]["deletionTimestamp"] = datetime.now(UTC).isoformat(timespec="seconds")
        return _json(shown)

    async def _review(self, request: Request) -> Response:
        body = await request.json()
        asked = body["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        return _json({**body, "status": {"allowed": (asked["verb"], resource) not in self.forbidden}}, 201)

    # --- their sessions --------------------------------------------------------------------------------------------------

    async def _proxy(self, request: Request) -> Response:
        found = self._pod(request)
        if found is None:
            return _missing(request)
        if not found.answers or request.path_params["port"] != found.port:
            return _status(503, "error trying to reach service: dial tcp 10.0.0.1: connect: connection refused")
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

    def _pod(self, request: Request) -> FakePod | None:
        return self.pods.get((request.path_params["namespace"], request.path_params["name"]))


def _json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(body, status, headers)


def _status(code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": REASONS[code], "code": code,
    }  # fmt: skip
    return _json(body, code, headers)


def _missing(request: Request) -> Response:
    return _status(404, f'pods "{request.path_params["name"]}" not found')


def main() -> None:
    """Run the server on loopback until it is interrupted."""
    from cuarl.settings import Settings

    parser = argparse.ArgumentParser(prog="python -m cuarl.env.pods.fake", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=26443)
    parser.add_argument("--token", default=secrets.token_hex(8), help="what clients must send as KUBE_TOKEN")
    parser.add_argument("--profile", choices=("small", "phone", "tall"), default="small")
    for name in ("--refuse", "--break", "--drop", "--start-seconds"):
        parser.add_argument(name, type=float, default=0.0)
    parser.add_argument(
        "--desktops", action="store_true", help="sessions of type linux are real desktops of this machine"
    )
    args = parser.parse_args()
    faults = Faults(args.refuse, getattr(args, "break"), args.drop, args.start_seconds)
    desktops = Ledger(Settings.load().sessions_folder) if args.desktops else None
    fake = FakeKubernetes(args.token, profile=args.profile, faults=faults, desktops=desktops)
    here = f"http://127.0.0.1:{args.port}"
    run(
        fake.app,
        args.port,
        f"export KUBE_API_URL={here} KUBE_TOKEN={args.token}",
        f"export CUARL_PODS_PROXY_URL={here}   # only to go through the sessions' own proxy",
    )


if __name__ == "__main__":
    main()
