"""The calls of the Kubernetes API that sessions need: pods of one namespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import httpx

from cuarl import strict_json
from cuarl.env.http import Service
from cuarl.env.pods.cluster import Cluster
from cuarl.env.pods.manifest import LEASE
from cuarl.env.pods.status import is_ready, stage, trouble
from cuarl.errors import EnvError

GRACE_S = 5
"""How long the session server may take to end before Kubernetes kills it."""
LATE_S = (0.25, 0.5, 1.0)
"""When to look again for a pod whose creation was never answered: it may just be coming about."""
GONE = (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT)


class Pods:
    """Pods of a namespace. All methods raise EnvError."""

    def __init__(self, cluster: Cluster, namespace: str | None = None) -> None:
        self.cluster, self.namespace = cluster, namespace or cluster.namespace
        self.service = Service("Kubernetes", cluster.server, timeout_s=30.0, auth=cluster.login, verify=cluster.verify)
        self._path = f"api/v1/namespaces/{self.namespace}/pods"

    def found(self) -> dict[str, str]:
        """How a later process finds this namespace again; no credential is in it."""
        return {"server": self.cluster.server, "namespace": self.namespace, **(self.cluster.found or {})}

    async def create(self, manifest: Mapping[str, Any]) -> None:
        """Make the pod, once: one that is there already is taken for it if it bears the same lease."""
        name, lease = manifest["metadata"]["name"], manifest["metadata"]["labels"][LEASE]
        # a name can be given once, so that a creation of unknown outcome may be asked for again
        reply = await self.service.send(
            "POST", self._path, json=dict(manifest), repeatable=True, accept=(httpx.codes.CONFLICT,)
        )
        if reply.status_code == httpx.codes.CONFLICT and not _bears(await self.get(name), lease):
            raise EnvError(f"there is another pod {name} in namespace {self.namespace}")

    async def get(self, name: str) -> dict[str, Any] | None:
        """The pod; None if there is none."""
        reply = await self.service.send("GET", f"{self._path}/{name}", repeatable=True, accept=(httpx.codes.NOT_FOUND,))
        if reply.status_code == httpx.codes.NOT_FOUND:
            return None
        body = strict_json.reply(reply.content)
        if not isinstance(body, dict):
            raise EnvError(f"Kubernetes' answer about pod {name} is no object")
        return body

    async def wait(self, name: str, say: Callable[[str], None]) -> None:
        """Wait until it is ready, telling ``say`` how far it is. Raises EnvError as soon as it can't become so."""
        pause = 0.1
        while True:
            found = await self.get(name)
            why = "it is gone" if found is None else trouble(found)
            if found is None or why:
                raise EnvError(f"pod {name} did not start: {why}")
            if is_ready(found):
                return
            say(stage(found))
            await anyio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def end(self, name: str, lease: str, *, sure: bool = True) -> None:
        """Delete the pod if it bears this lease. ``sure`` says that it was made, not only asked for."""
        found = await self.get(name)
        for pause in () if sure else LATE_S:
            if found is not None:
                break
            await anyio.sleep(pause)
            found = await self.get(name)
        if found is None or not _bears(found, lease):
            return
        # another pod that takes the name meanwhile must not be hit
        body = {"gracePeriodSeconds": GRACE_S, "preconditions": {"uid": found["metadata"]["uid"]}}
        await self.service.send("DELETE", f"{self._path}/{name}", json=body, repeatable=True, accept=GONE)

    def proxied(self, name: str, port: int) -> str:
        """Path by which the API server itself hands requests on to the pod."""
        return f"{self._path}/{name}:{port}/proxy"

    async def version(self) -> str:
        """The server's version."""
        return str((await self.service.json("GET", "version", repeatable=True)).get("gitVersion", "unknown"))

    async def may(self, verb: str, subresource: str = "") -> bool:
        """Whether this account may do so with pods of the namespace."""
        asked = {"namespace": self.namespace, "verb": verb, "resource": "pods", "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        reply = await self.service.json("POST", path, json=review, repeatable=True)
        return (reply.get("status") or {}).get("allowed") is True

    async def lacking(self, *, proxied: bool) -> list[str]:
        """What sessions need to do that this account may not.

        ``proxied`` says whether by the API server's own proxy.
        """
        needed = [("create", ""), ("get", ""), ("delete", "")]
        needed += [("get", "proxy"), ("create", "proxy")] if proxied else []
        return [f"{verb} pods{part and '/'}{part}" for verb, part in needed if not await self.may(verb, part)]

    async def close(self) -> None:
        """Close the connections."""
        await self.service.close()


def _bears(pod: Mapping[str, Any] | None, lease: str) -> bool:
    return pod is not None and (pod.get("metadata", {}).get("labels") or {}).get(LEASE) == lease
