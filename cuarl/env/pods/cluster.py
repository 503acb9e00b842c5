"""Which Kubernetes API server is spoken to, and as whom.

The first that is there of: an address with a token, a kubeconfig, the account of the pod that cuarl itself runs in.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from cuarl.env.pods.kubeconfig import read, trusting
from cuarl.env.pods.login import FileToken, FixedToken, Login
from cuarl.errors import PrerequisiteError
from cuarl.settings import Settings

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token and certificate of its own account."""
USUAL = Path("~/.kube/config")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class NoCluster(PrerequisiteError):
    """Nothing says where a cluster is."""


@dataclass(frozen=True, slots=True)
class Where:
    """What the machine's settings say about the cluster; all of it may be unset."""

    api_url: str | None = None
    token: str | None = None
    ca_file: Path | None = None
    kubeconfig: str | None = None
    """Paths as in KUBECONFIG; unset means ``~/.kube/config``."""
    context: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> Where:
        """What ``settings`` say about it."""
        token = settings.kube_token.get_secret_value() if settings.kube_token else None
        return cls(settings.kube_api_url, token, settings.kube_ca_file, settings.kubeconfig, settings.kube_context)


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server, with what it is spoken to by."""

    server: str
    namespace: str
    login: httpx.Auth | None = None
    verify: ssl.SSLContext | None = None
    source: str = ""
    """Where all this was found, for people."""
    found: Mapping[str, str] | None = None
    """How to find it again, without any credential."""


def find(where: Where, environment: Mapping[str, str] | None = None, account: Path = ACCOUNT) -> Cluster:
    """The cluster.

    Raises PrerequisiteError if none is set, or if what is set can't be read or would send a token openly.
    """
    found = _found(where, os.environ if environment is None else environment, account)
    url = httpx.URL(found.server)
    if found.login is not None and url.scheme == "http" and url.host not in LOOPBACK:
        raise PrerequisiteError(
            "a token is not sent without encryption",
            where=found.server,
            hint="use the address that begins with https://",
        )
    return found


def _found(where: Where, environment: Mapping[str, str], account: Path) -> Cluster:
    if where.api_url:
        return _given(where.api_url, where)
    paths = [Path(path).expanduser() for path in (where.kubeconfig or "").split(os.pathsep) if path]
    usual = USUAL.expanduser()
    if paths or where.context or usual.is_file():
        chosen = read(paths or [usual], where.context)
        tokens = FixedToken(where.token) if where.token else chosen.tokens
        return Cluster(
            chosen.server,
            chosen.namespace,
            Login(tokens) if tokens else None,
            chosen.verify,
            f"context {chosen.context} of {chosen.path}",
            {"kubeconfig": os.pathsep.join(str(p.absolute()) for p in paths or [usual]), "context": chosen.context},
        )
    host = environment.get("KUBERNETES_SERVICE_HOST")
    if host and (account / "token").is_file():
        return _own(host, environment.get("KUBERNETES_SERVICE_PORT", "443"), account)
    raise NoCluster(
        "no Kubernetes cluster is set",
        where="KUBECONFIG, ~/.kube/config, KUBE_API_URL",
        hint="export KUBECONFIG=FILE, or KUBE_API_URL=URL and KUBE_TOKEN=TOKEN",
    )


def _given(url: str, where: Where) -> Cluster:
    verify = None
    if where.ca_file is not None:
        try:
            verify = trusting(where.ca_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise PrerequisiteError(f"can't read the certificate: {error}", where=str(where.ca_file)) from error
    login = Login(FixedToken(where.token)) if where.token else None
    return Cluster(url.rstrip("/"), "default", login, verify, "KUBE_API_URL", {})


def _own(host: str, port: str, account: Path) -> Cluster:
    try:
        verify = trusting((account / "ca.crt").read_text(encoding="utf-8"))
        namespace = (account / "namespace").read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise PrerequisiteError(f"the account of this pod can't be read: {error}", where=str(account)) from error
    address = f"[{host}]" if ":" in host else host
    login = Login(FileToken(account / "token"))
    return Cluster(f"https://{address}:{port}", namespace, login, verify, "the account of this pod", {})
