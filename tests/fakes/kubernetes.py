"""The local Kubernetes API server on a free port, and what the environment of a command has to say to use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from cuarl.local.kubernetes import FakeKubernetes
from cuarl.local.threads import served

TOKEN = "kube-marker-52f8"


class Running(NamedTuple):
    """The cluster, where it is, and how commands find it."""

    fake: FakeKubernetes
    url: str
    variables: dict[str, str]


@contextmanager
def cluster(
    secure: Mapping[str, Any] | None = None, make: type[FakeKubernetes] = FakeKubernetes, **options: Any
) -> Iterator[Running]:
    """Serve while inside; ``secure`` are ``certificates.secured``."""
    fake = make(TOKEN, **options)
    with served(fake.app(), **(secure or {})) as url:
        yield Running(fake, url, {"KUBE_API_URL": url, "KUBE_TOKEN": TOKEN})
