"""Who may ask a server, and how much.

A server that listens on this machine alone is still reached by every web page that this machine's browsers show: by an
image or a form of a foreign page, or by a name that its owner suddenly points at 127.0.0.1 (DNS rebinding). So the name
that a client asked for, and the page that it asks from, are checked before anything else.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from cuarl.errors import ConfigError
from cuarl.web.refusal import Refusal, Say

OTHER_PAGES = frozenset({"cross-site", "same-site"})
"""What browsers say of a request that another origin's page makes; ``none`` is a person's own."""


@dataclass(slots=True)
class Token:
    """What clients must send: as a bearer token where the header is ``authorization``, by itself in any other.

    It may be given another value at any time.
    """

    value: str
    header: str = "authorization"

    def borne_by(self, headers: Mapping[str, str]) -> bool:
        """Whether these headers (names in lower case) have it; takes the same time whatever they have."""
        given = headers.get(self.header, "")
        if self.header == "authorization":
            kind, _, given = given.partition(" ")
            given = given.strip() if kind.lower() == "bearer" else ""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.value.encode())


def _none(path: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one server."""

    say: Say
    """How its protocol words a refusal."""
    local: bool = True
    """Whether it answers only to this machine's own names, and to those in ``hosts``."""
    hosts: frozenset[str] = frozenset()
    """Further names, in lower case and without a port."""
    token: Token | None = None
    open: Callable[[str], bool] = _none
    """Says which paths need no token."""
    linked: bool = False
    """Whether links of other sites lead to its pages: what a GET answers is to be looked at, and changes nothing."""
    body_bytes: int = 1 << 20
    """Largest body of a request."""
    larger: Mapping[str, int] = field(default_factory=dict)
    """Largest bodies of paths that take more."""
    body_s: float = 30.0
    """Longest time from a request's headers to the end of its body."""

    def most_bytes(self, scope: Mapping[str, Any]) -> int:
        """Largest body of a request for the path of an ASGI connection."""
        return self.larger.get(scope["path"].removeprefix(scope.get("root_path", "")), self.body_bytes)

    def admit(self, scope: Mapping[str, Any]) -> None:
        """Let an ASGI connection through. Raises Refusal."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self.local and not (is_loopback(host) or _name(host) in self.hosts):
            raise Refusal("this server answers to the names of this machine only", status=403)
        elsewhere = _foreign(headers.get("origin"), host) or headers.get("sec-fetch-site", "none") in OTHER_PAGES
        if elsewhere and not (self.linked and _follows_link(scope, headers)):
            raise Refusal("this server answers to no page of another origin", status=403)
        if (
            self.token is None
            or self.open(scope["path"].removeprefix(scope.get("root_path", "")))
            or self.token.borne_by(headers)
        ):
            return
        name = self.token.header
        how = "as a bearer token" if name == "authorization" else f"in the header {name.title()}"
        raise Refusal(
            f"the token is missing or wrong: send the server's token {how}",
            code="invalid_api_key",
            status=401,
            headers={"WWW-Authenticate": "Bearer"} if name == "authorization" else None,
        )


def _follows_link(scope: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """Whether a browser fills a whole window with the answer, which the page that has the link never gets to see."""
    return (
        scope.get("method") == "GET"
        and "origin" not in headers
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def names_of(hosts: Iterable[str]) -> frozenset[str]:
    """What ``Rules.hosts`` holds of names as people write them, with or without a port.

    Raises ConfigError for one that is none.
    """
    found = {host: _name(host) for host in hosts}
    for host, name in found.items():
        if not name:
            raise ConfigError(f"{host!r} is no name of a host", hint="--allow-host agents.example")
    return frozenset(found.values())


def is_loopback(host: str) -> bool:
    """Whether a ``Host`` header, or an address to listen on, names this machine alone."""
    name = _name(f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # brackets that hold no address
        return ""


def _foreign(origin: str | None, host: str) -> bool:
    """Whether a request comes from a page that this server did not give.

    ``null`` is one that hides where it is from.
    """
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != host.lower() or not host
    except ValueError:
        return True
