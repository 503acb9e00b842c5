"""Which of the machines of a run this is, and where they meet. Importable without torch."""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace

from cuarl.errors import ConfigError

WAIT_S = 300.0
"""How long nodes wait for each other to come, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of a run. Node 0 keeps the run, and the others meet it at its address."""

    rank: int = 0
    count: int = 1
    host: str = ""
    port: int = 0

    @property
    def place(self) -> str:
        """Where they meet, as it is typed."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


ALONE = Node()


def parse_place(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``; an IPv6 address stands in brackets. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    if not host.strip("[]") or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(
            f'"{text}" is no HOST:PORT of node 0', where="--rendezvous", hint="--rendezvous node0.example:29500"
        )
    return host.strip("[]"), int(port)


def check_port_free(node: Node) -> None:
    """Raise ConfigError if something listens where the nodes are to meet; on node 0, before it does so itself."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", node.port))
        except OSError as error:
            raise ConfigError(
                f"port {node.port} of this machine can't be listened at: {error.strerror}",
                where=f"--rendezvous {node.place}",
                hint=f"another port, on all nodes: --rendezvous {replace(node, port=node.port % 65535 + 1).place}",
            ) from error


def interface_to(node: Node) -> str | None:
    """Name of the network interface on which node 0 is reached; None if that can't be told.

    Processes that only know their machine's name often take it for 127.0.0.1, where no other machine finds them.
    """
    import psutil

    try:
        family, kind, _, _, address = socket.getaddrinfo(node.host, node.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)  # sends nothing, but chooses the way
            mine = probe.getsockname()[0]
    except OSError:
        return None
    found = (name for name, known in psutil.net_if_addrs().items() for one in known if one.address == mine)
    return next(found, None)
