"""Pods on the ledger: deleted through the API server that they were asked of."""

from __future__ import annotations

from cuarl.env.leases import SWEEPERS, Lease
from cuarl.env.pods.client import Pods
from cuarl.env.pods.cluster import Where, find
from cuarl.errors import EnvError
from cuarl.settings import Settings

KIND = "pod"


async def end(lease: Lease, settings: Settings) -> None:
    """Delete the pod of a lease. Raises EnvError if its cluster can't be asked."""
    detail, now = lease.detail, Where.of(settings)
    if detail.get("kubeconfig"):  # found again where the lost process found it, whatever is current today
        now = Where(
            token=None if now.api_url else now.token, kubeconfig=detail["kubeconfig"], context=detail["context"]
        )
    cluster = find(now)
    if cluster.server != detail["server"]:  # no credential of one cluster is shown to another
        raise EnvError(
            f"the pod is in the cluster at {detail['server']}, and the one that is set is at {cluster.server}",
            hint="export KUBECONFIG=FILE CUARL_KUBE_CONTEXT=NAME",
        )
    pods = Pods(cluster, detail["namespace"])
    try:
        # how long ago it was asked for is not known, so a creation under way is waited for
        await pods.end(lease.id, detail["label"], sure=False)
    finally:
        await pods.close()


SWEEPERS[KIND] = end
